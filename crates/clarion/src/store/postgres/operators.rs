//! Operators of the console and their sign-ins, in PostgreSQL.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{PostgresStore, bound};
use crate::domain::operator::{Operator, OperatorChange, OperatorName, OperatorRole, SignIn};
use crate::store::statements::operators;
use crate::store::{OperatorBook, StoreError};

#[async_trait]
impl OperatorBook for PostgresStore {
    async fn add_operator(&self, operator: Operator) -> Result<(), StoreError> {
        let values = operators::values(&operator);
        let added = self
            .execute(operators::ADD.postgres, &bound(&values))
            .await?;
        match added {
            1 => Ok(()),
            _ => Err(StoreError::operator_exists(&operator.name)),
        }
    }

    async fn operator(&self, name: &OperatorName) -> Result<Option<Operator>, StoreError> {
        let row = self
            .query_opt(operators::FIND.postgres, &[&name.as_str()])
            .await?;
        row.as_ref().map(operators::operator).transpose()
    }

    async fn operators(&self) -> Result<Vec<Operator>, StoreError> {
        let rows = self.query(operators::ALL.postgres, &[]).await?;
        rows.iter().map(operators::operator).collect()
    }

    async fn change_operator(
        &self,
        name: &OperatorName,
        change: OperatorChange,
    ) -> Result<Operator, StoreError> {
        let values = operators::change_values(name, &change);
        let row = self
            .query_opt(operators::CHANGE.postgres, &bound(&values))
            .await?;
        let row = row.ok_or_else(|| StoreError::no_operator(name))?;
        operators::operator(&row)
    }

    async fn remove_operator(&self, name: &OperatorName) -> Result<(), StoreError> {
        let values: super::Values<'_> = &[&name.as_str()];
        match self.execute(operators::REMOVE.postgres, values).await? {
            1 => Ok(()),
            _ => Err(StoreError::no_operator(name)),
        }
    }

    async fn add_sign_in(&self, sign_in: SignIn) -> Result<(), StoreError> {
        let now = sign_in.created_at.as_millisecond();
        self.execute(operators::FORGET_EXPIRED.postgres, &[&now])
            .await?;
        let values = operators::sign_in_values(&sign_in);
        self.execute(operators::ADD_SIGN_IN.postgres, &bound(&values))
            .await?;
        Ok(())
    }

    async fn sign_in(
        &self,
        id_hash: &str,
        now: Timestamp,
    ) -> Result<Option<(SignIn, OperatorRole)>, StoreError> {
        let values: super::Values<'_> = &[&id_hash, &now.as_millisecond()];
        let row = self.query_opt(operators::SIGN_IN.postgres, values).await?;
        row.as_ref().map(operators::sign_in).transpose()
    }

    async fn renew_sign_in(
        &self,
        id_hash: &str,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let values = operators::renewal_values(id_hash, seen_at, expires_at);
        self.execute(operators::RENEW_SIGN_IN.postgres, &bound(&values))
            .await?;
        Ok(())
    }

    async fn end_sign_in(&self, id_hash: &str) -> Result<(), StoreError> {
        self.execute(operators::END_SIGN_IN.postgres, &[&id_hash])
            .await?;
        Ok(())
    }
}
