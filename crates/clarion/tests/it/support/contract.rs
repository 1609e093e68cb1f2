//! Runs one suite on SQLite and on PostgreSQL. Each scenario gets an empty database of either kind.

macro_rules! contract {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("clarion.db");
                super::$name(clarion::store::Database::Sqlite(path)).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::support::postgres::empty().await).await;
            })+
        }
    };
}
