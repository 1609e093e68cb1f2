//! The verbs of the store that are about operators of the console and their sign-ins.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::domain::operator::{Operator, OperatorChange, OperatorName, OperatorRole, SignIn};

#[async_trait]
pub trait OperatorBook: Send + Sync {
    async fn add_operator(&self, operator: Operator) -> Result<(), StoreError>;
    async fn operator(&self, name: &OperatorName) -> Result<Option<Operator>, StoreError>;
    /// By their names.
    async fn operators(&self) -> Result<Vec<Operator>, StoreError>;
    /// Applies the change to what is stored, and returns the operator as it is now.
    async fn change_operator(
        &self,
        name: &OperatorName,
        change: OperatorChange,
    ) -> Result<Operator, StoreError>;
    async fn remove_operator(&self, name: &OperatorName) -> Result<(), StoreError>;
    /// Keeps a new sign-in, and forgets those that have expired by then.
    async fn add_sign_in(&self, sign_in: SignIn) -> Result<(), StoreError>;
    /// A sign-in that has not expired, of an operator that there is and whose password is still the same; with the role as it is now.
    async fn sign_in(
        &self,
        id_hash: &str,
        now: Timestamp,
    ) -> Result<Option<(SignIn, OperatorRole)>, StoreError>;
    /// Its operator has used it.
    async fn renew_sign_in(
        &self,
        id_hash: &str,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), StoreError>;
    async fn end_sign_in(&self, id_hash: &str) -> Result<(), StoreError>;
}
