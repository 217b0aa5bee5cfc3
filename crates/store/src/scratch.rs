//! A PostgreSQL of one's own, for rehearsals and tests: made in a temporary directory, reached through a socket in it that
//! nobody else may open, and gone with the process that started it, however that ends.

use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, raw_sql};

use crate::{Durability, StoreError};

/// Where Debian keeps the programs of each version, which are not in the `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

/// How long a server may take to start. It takes a tenth of a second, on a machine that does nothing else.
const LONGEST_START: Duration = Duration::from_secs(60);

/// The role that owns it all.
const ROLE: &str = "rehearsal";

/// Holds the server while the standard input lasts, which is as long as the process that started it lives; then ends it
/// and removes all of it. Signals of a terminal are for the one who holds the other end.
const KEEPER: &str = r#"
trap '' HUP INT TERM
"$1" -D "$2/data" -k "$2" -c listen_addresses= $3 >>"$2/log" 2>&1 </dev/null &
read -r word
kill -QUIT $! 2>/dev/null
wait $!
[ "$word" = stay ] || rm -rf "$2"
"#;

/// Why there is no scratch server.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// PostgreSQL is not on this machine.
    #[error("PostgreSQL is not installed: there is no `initdb` in the PATH or in {DEBIAN}")]
    NotInstalled,
    /// PostgreSQL refuses to run as root, and there is nobody else to run it.
    #[error("PostgreSQL does not run as root, and there is neither a user `postgres` nor `nobody`")]
    NoUser,
    /// Something else did not work.
    #[error("cannot {what}: {why}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What came of it.
        why: String,
    },
    /// It is there, and does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A server. It ends, and all that is in it is gone, when this is dropped.
pub struct Scratch {
    programs: PathBuf,
    user: Option<User>,
    directory: PathBuf,
    durability: Durability,
    keeper: Option<Child>,
    databases: AtomicU32,
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Whom the server runs as, if not as us.
#[derive(Debug, Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

impl Scratch {
    /// Makes a cluster and starts its server. Takes about a second.
    pub fn start(durability: Durability) -> Result<Self, ScratchError> {
        let programs = programs().ok_or(ScratchError::NotInstalled)?;
        let user = if rustix::process::geteuid().is_root() {
            Some(someone_else().ok_or(ScratchError::NoUser)?)
        } else {
            None
        };
        let directory = make_directory(user).map_err(|error| failed("make a directory", error))?;
        let mut scratch =
            Self { programs, user, directory, durability, keeper: None, databases: AtomicU32::new(0) };
        scratch.initialise()?;
        scratch.launch()?;
        Ok(scratch)
    }

    /// Makes an empty database; its URL.
    pub async fn database(&self) -> Result<String, ScratchError> {
        let name = format!("scratch{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let options = PgConnectOptions::new_without_pgpass()
            .socket(&self.directory)
            .username(ROLE)
            .database("postgres")
            .disable_statement_logging();
        let made = async {
            let mut connection = options.connect().await?;
            raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await?;
            connection.close().await
        };
        made.await.map_err(StoreError::from)?;
        Ok(self.url(&name))
    }

    /// Kills the server as a crash would, and starts it again. Whoever is connected loses the connection.
    pub fn crash_and_restart(&mut self) -> Result<(), ScratchError> {
        self.crash()?;
        self.restart()
    }

    /// Kills the server as a crash would.
    pub fn crash(&mut self) -> Result<(), ScratchError> {
        self.end("stay")
    }

    /// Starts a server again that crashed.
    pub fn restart(&mut self) -> Result<(), ScratchError> {
        self.launch()
    }

    fn url(&self, database: &str) -> String {
        format!("postgres:///{database}?host={}&user={ROLE}", self.directory.display())
    }

    fn initialise(&self) -> Result<(), ScratchError> {
        let mut initdb = self.command(&self.programs.join("initdb"));
        initdb.arg("-D").arg(self.directory.join("data"));
        initdb.args([
            "-U",
            ROLE,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "--no-instructions",
        ]);
        let made = initdb.stdin(Stdio::null()).output().map_err(|error| failed("run initdb", error))?;
        if !made.status.success() {
            return Err(failed("make a cluster", String::from_utf8_lossy(&made.stderr).trim()));
        }
        Ok(())
    }

    /// Starts the server, and waits until it says that it is ready.
    fn launch(&mut self) -> Result<(), ScratchError> {
        let settings = match self.durability {
            Durability::Full => "",
            Durability::UntilPowerFails => "-c fsync=off -c full_page_writes=off",
        };
        // Postgres takes its settings one by one; the shell splits them again.
        let keeper = KEEPER.replace("$3", settings);
        let child = self
            .command(Path::new("sh"))
            .args(["-c", &keeper, "keeper"])
            .arg(self.programs.join("postgres"))
            .arg(&self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| failed("start a server", error))?;
        self.keeper = Some(child);
        let deadline = Instant::now() + LONGEST_START;
        while !self.is_ready() {
            if Instant::now() > deadline {
                let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                return Err(failed("start a server", log.trim()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// The eighth line of the server's lock file says how it is.
    fn is_ready(&self) -> bool {
        let status = fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap_or_default();
        status.lines().nth(7).is_some_and(|line| line.trim() == "ready")
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a server that runs on as another user, for callers without a runtime"
    )]
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.directory).env("LC_ALL", "C");
        if let Some(User { uid, gid }) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Tells the keeper a word, and waits until it is done.
    fn end(&mut self, word: &str) -> Result<(), ScratchError> {
        let Some(mut keeper) = self.keeper.take() else {
            return Ok(());
        };
        let told = keeper
            .stdin
            .take()
            .map_or(Ok(()), |mut stdin| io::Write::write_all(&mut stdin, format!("{word}\n").as_bytes()));
        told.and_then(|()| keeper.wait()).map_err(|error| failed("end a server", error))?;
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The keeper removes the directory; if there is none, nothing was started in it.
        if self.keeper.is_none() || self.end("").is_err() {
            let _: io::Result<()> = fs::remove_dir_all(&self.directory);
        }
    }
}

fn failed(what: &'static str, why: impl fmt::Display) -> ScratchError {
    ScratchError::Failed { what, why: why.to_string() }
}

/// A directory that only the server's user, and we, can enter. The path of a socket in it must be short.
fn make_directory(user: Option<User>) -> io::Result<PathBuf> {
    let mut random = [0_u8; 8];
    fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    let directory = std::env::temp_dir().join(format!("rehearsal-pg-{:016x}", u64::from_ne_bytes(random)));
    fs::create_dir(&directory)?;
    fs::set_permissions(&directory, Permissions::from_mode(0o700))?;
    if let Some(User { uid, gid }) = user {
        chown(&directory, Some(uid), Some(gid))?;
    }
    Ok(directory)
}

/// The directory of PostgreSQL's programs: of the newest version, where there are several.
fn programs() -> Option<PathBuf> {
    let in_path = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).find(|directory| has_programs(directory)));
    let of_debian = || {
        let versions = fs::read_dir(DEBIAN).ok()?.flatten();
        let mut found: Vec<(u32, PathBuf)> = versions
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
            .filter(|(_, directory)| has_programs(directory))
            .collect();
        found.sort();
        found.pop().map(|(_, directory)| directory)
    };
    in_path.or_else(of_debian)
}

fn has_programs(directory: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| directory.join(program).is_file())
}

/// A user that is not root, as the machine lists them.
fn someone_else() -> Option<User> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let find = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2);
        Some(User { uid: ids.next()?.parse().ok()?, gid: ids.next()?.parse().ok()? })
    };
    find("postgres").or_else(|| find("nobody"))
}
