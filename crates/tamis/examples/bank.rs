//! A bank: transfers between accounts, which several threads make at once. Money is neither made nor lost, no account is overdrawn, and each transfer has
//! a receipt.
//!
//! Run it: `cargo run --release -p tamis --example bank`

use std::{
    error::Error,
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use tamis::{Db, Keyspace, KeyspaceOptions, Transaction};

const ACCOUNT_COUNT: u64 = 20;
const BEGIN_BALANCE: u64 = 100;

/// Why a transfer was not made. An error of the program's own is a rollback.
#[derive(Debug)]
enum TransferError {
    Overdrawn,
    Store(tamis::Error),
}

impl From<tamis::Error> for TransferError {
    fn from(error: tamis::Error) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overdrawn => formatter.write_str("the account has less money than that"),
            Self::Store(error) => error.fmt(formatter),
        }
    }
}

impl Error for TransferError {}

struct Bank {
    db: Db,
    accounts: Keyspace,
    receipts: Keyspace,
}

impl Bank {
    fn open(db: Db) -> tamis::Result<Self> {
        let accounts = db.get_or_create_keyspace("accounts", KeyspaceOptions::default())?;
        let receipts = db.get_or_create_keyspace("receipts", KeyspaceOptions::default())?;
        for account in 0..ACCOUNT_COUNT {
            // Accounts that exist keep their money.
            accounts.compare_and_put(account.to_be_bytes(), None, Some(&BEGIN_BALANCE.to_be_bytes()))?;
        }
        Ok(Self { db, accounts, receipts })
    }

    fn balance(&self, transaction: &Transaction, account: u64) -> tamis::Result<u64> {
        let value = transaction.get(&self.accounts, account.to_be_bytes())?;
        Ok(value.and_then(|value| value[..].try_into().ok()).map_or(0, u64::from_be_bytes))
    }

    fn transfer(&self, from: u64, to: u64, amount: u64) -> Result<(), TransferError> {
        self.db.transact(|transaction| {
            let paid =
                self.balance(transaction, from)?.checked_sub(amount).ok_or(TransferError::Overdrawn)?;
            transaction.put(&self.accounts, from.to_be_bytes(), paid.to_be_bytes())?;
            let received = self.balance(transaction, to)? + amount;
            transaction.put(&self.accounts, to.to_be_bytes(), received.to_be_bytes())?;
            // Two transfers that take the same number conflict.
            let number = transaction.last(&self.receipts)?.and_then(|(key, _)| key[..].try_into().ok());
            let number = number.map_or(0, |last| u64::from_be_bytes(last) + 1);
            transaction.put(&self.receipts, number.to_be_bytes(), format!("{amount} from {from} to {to}"))?;
            Ok(())
        })
    }

    /// All accounts at one point in time.
    fn total(&self) -> tamis::Result<u64> {
        let transaction = self.db.transaction();
        (0..ACCOUNT_COUNT).map(|account| self.balance(&transaction, account)).sum()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let bank = Bank::open(Db::open(folder.path())?)?;
    let made = AtomicU64::new(0);
    thread::scope(|scope| {
        let clerks: Vec<_> = (0..4_u64)
            .map(|clerk| {
                let (bank, made) = (&bank, &made);
                scope.spawn(move || {
                    for number in 0..500 {
                        let (from, to) =
                            ((clerk * 7 + number) % ACCOUNT_COUNT, (number * 3 + 1) % ACCOUNT_COUNT);
                        match bank.transfer(from, to, 1 + number % 40) {
                            Ok(()) => made.fetch_add(1, Ordering::Relaxed),
                            Err(TransferError::Overdrawn) => 0,
                            Err(TransferError::Store(error)) => return Err(error),
                        };
                    }
                    Ok(())
                })
            })
            .collect();
        // Whoever looks sees all the money, at every moment.
        for _ in 0..100 {
            assert_eq!(bank.total()?, ACCOUNT_COUNT * BEGIN_BALANCE);
        }
        clerks.into_iter().try_for_each(|clerk| clerk.join().expect("a clerk panicked"))
    })?;
    assert_eq!(bank.total()?, ACCOUNT_COUNT * BEGIN_BALANCE);
    assert_eq!(bank.receipts.iter().count() as u64, made.load(Ordering::Relaxed));
    println!("{} transfers, and the sum is the same", made.into_inner());
    Ok(())
}
