//! Operators of the console: who may sign in, and who has.

use jiff::Timestamp;

use super::change::NotedChange;
use super::{Management, ManagementError};
use crate::domain::operator::{
    Operator, OperatorChange, OperatorName, OperatorPassword, OperatorRole, SignIn,
};
use crate::passwords;

/// What becomes of an operator; what is not named stays.
#[derive(Debug, Clone, Default)]
pub struct ChangedOperator {
    pub role: Option<OperatorRole>,
    /// Ends every sign-in.
    pub password: Option<OperatorPassword>,
}

impl Management {
    /// In the order of their names.
    pub async fn operators(&self) -> Result<Vec<Operator>, ManagementError> {
        Ok(self.store.operators().await?)
    }

    /// `None` if there is none of this name.
    pub async fn operator(&self, name: &OperatorName) -> Result<Option<Operator>, ManagementError> {
        Ok(self.store.operator(name).await?)
    }

    pub async fn add_operator(
        &self,
        name: OperatorName,
        role: OperatorRole,
        password: &OperatorPassword,
    ) -> Result<Operator, ManagementError> {
        let change = NotedChange::new("operator add")
            .on(&name)
            .with("role", role.as_str());
        let operator = Operator::new(name, role, passwords::hash(password), self.clock.now());
        self.noted(change, self.store.add_operator(operator.clone()))
            .await?;
        Ok(operator)
    }

    pub async fn set_operator(
        &self,
        name: &OperatorName,
        changed: ChangedOperator,
    ) -> Result<Operator, ManagementError> {
        let mut change = NotedChange::new("operator set")
            .on(name)
            .with_any("role", changed.role.map(OperatorRole::as_str));
        if changed.password.is_some() {
            change = change.with_secret("password");
        }
        let wanted = OperatorChange {
            role: changed.role,
            password: changed.password.as_ref().map(passwords::hash),
            at: self.clock.now(),
        };
        self.noted(change, self.store.change_operator(name, wanted))
            .await
    }

    /// Its sign-ins end with it.
    pub async fn remove_operator(&self, name: &OperatorName) -> Result<(), ManagementError> {
        let change = NotedChange::new("operator remove").on(name);
        self.noted(change, self.store.remove_operator(name)).await
    }

    pub async fn add_sign_in(&self, sign_in: SignIn) -> Result<(), ManagementError> {
        Ok(self.store.add_sign_in(sign_in).await?)
    }

    /// `None` if it has ended, or its operator is not what it was.
    pub async fn sign_in(
        &self,
        id_hash: &str,
        now: Timestamp,
    ) -> Result<Option<(SignIn, OperatorRole)>, ManagementError> {
        Ok(self.store.sign_in(id_hash, now).await?)
    }

    pub async fn renew_sign_in(
        &self,
        id_hash: &str,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), ManagementError> {
        Ok(self.store.renew_sign_in(id_hash, now, expires_at).await?)
    }

    pub async fn end_sign_in(&self, id_hash: &str) -> Result<(), ManagementError> {
        Ok(self.store.end_sign_in(id_hash).await?)
    }
}
