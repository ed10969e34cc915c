//! Starts a role as a process, or as a task of this process for stores in memory, and exchanges messages with it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};
use std::sync::{Arc, mpsc};

use slatedb::object_store::ObjectStore;
use tamis_slatedb_support::{Address, Credentials, serve_s3};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::Result;
use crate::messages::{Command, Message, Place, Role, Task};
use crate::roles;

/// The connection of a role to the program that started it.
pub(crate) struct Connection {
    send: Box<dyn Fn(&Message) + Send + Sync>,
    pub(crate) commands: UnboundedReceiver<Command>,
}

impl Connection {
    pub(crate) fn send(&self, message: &Message) {
        (self.send)(message);
    }
}

/// A running role.
pub(crate) enum Worker {
    Process { child: Child, input: ChildStdin, output: BufReader<ChildStdout> },
    Task { messages: mpsc::Receiver<Message>, commands: UnboundedSender<Command> },
}

impl Worker {
    /// Starts this program again with a task.
    pub(crate) fn process(task: &Task) -> Result<Self> {
        let mut child = Program::new(std::env::current_exe()?)
            .args(["--task", &serde_json::to_string(task)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("the process has no input")?;
        let output = child.stdout.take().ok_or("the process has no output")?;
        Ok(Self::Process { child, input, output: BufReader::new(output) })
    }

    /// Starts a task on a runtime of this process.
    pub(crate) fn task(runtime: &Runtime, task: Task, store: Arc<dyn ObjectStore>) -> Self {
        let (sender, messages) = mpsc::channel();
        let (commands, receiver) = unbounded_channel();
        let send = move |message: &Message| drop(sender.send(message.clone()));
        let connection = Connection { send: Box::new(send), commands: receiver };
        runtime.spawn(run(task, store, connection));
        Self::Task { messages, commands }
    }

    /// The next message; an error if the role failed or has ended.
    pub(crate) fn receive(&mut self) -> Result<Message> {
        let message = match self {
            Self::Process { output, .. } => {
                let mut line = String::new();
                if output.read_line(&mut line)? == 0 {
                    return Err("a process of the cluster has ended".into());
                }
                serde_json::from_str(&line)?
            }
            Self::Task { messages, .. } => messages.recv().map_err(|_| "a task of the cluster has ended")?,
        };
        match message {
            Message::Failed { reason } => Err(reason.into()),
            other => Ok(other),
        }
    }

    pub(crate) fn command(&mut self, command: Command) -> Result<()> {
        match self {
            Self::Process { input, .. } => {
                writeln!(input, "{}", serde_json::to_string(&command)?)?;
                input.flush()?;
            }
            Self::Task { commands, .. } => {
                commands.send(command).map_err(|_| "a task of the cluster has ended")?
            }
        }
        Ok(())
    }
}

impl Drop for Worker {
    /// Every process ends with the cluster.
    fn drop(&mut self) {
        match self {
            Self::Process { child, .. } => {
                drop(child.kill());
                drop(child.wait());
            }
            Self::Task { commands, .. } => drop(commands.send(Command::Stop)),
        }
    }
}

fn print(message: &Message) {
    let mut output = std::io::stdout().lock();
    if let Ok(line) = serde_json::to_string(message) {
        // Without a reader there is no one to report to.
        drop(writeln!(output, "{line}").and_then(|()| output.flush()));
    }
}

/// The main function of a started process.
pub(crate) fn run_task_of_process(task: &str) -> Result<()> {
    let task: Task = serde_json::from_str(task)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    if let (Role::Server { folder }, Place::Server { access_key, secret_key, .. }) = (&task.role, &task.place)
    {
        let credentials = Credentials { access_key: access_key.clone(), secret_key: secret_key.clone() };
        let report = |address| print(&Message::Listening { endpoint: format!("http://{address}") });
        return Ok(runtime.block_on(serve_s3(folder.as_ref(), &credentials, report))?);
    }
    let (sender, commands) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(std::result::Result::ok) {
            if let Ok(command) = serde_json::from_str(&line) {
                let _ = sender.send(command);
            }
        }
        let _ = sender.send(Command::Stop);
    });
    let connection = Connection { send: Box::new(print), commands };
    let store = open(&task.place)?;
    runtime.block_on(run(task, store, connection));
    // Background tasks of SlateDB may wait for the store.
    runtime.shutdown_background();
    Ok(())
}

async fn run(task: Task, store: Arc<dyn ObjectStore>, mut connection: Connection) {
    if let Err(error) = roles::run(&task, store, &mut connection).await {
        connection.send(&Message::Failed {
            reason: format!("{:?} with {}: {error}", task.role, task.variant.name()),
        });
    }
}

pub(crate) fn open(place: &Place) -> Result<Arc<dyn ObjectStore>> {
    let address = match place {
        Place::Address(address) => Address::open(address)?,
        Place::Memory => Address::open("memory://")?,
        Place::Server { endpoint, bucket, access_key, secret_key } => {
            let credentials = Credentials { access_key: access_key.clone(), secret_key: secret_key.clone() };
            Address::with_endpoint(bucket, endpoint, &credentials)?
        }
    };
    Ok(address.store)
}
