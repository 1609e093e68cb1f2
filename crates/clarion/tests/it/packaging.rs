//! What is shipped: the unit, the install script, the Debian package and the container file, as far as a test can try them.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use clarion::config::Config;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output();
    output.unwrap_or_else(|error| panic!("{program}: {error}; `make setup` installs it"))
}

fn succeeds(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    said.into_owned()
}

fn install(stage: &Path, binary: &str) {
    let stage = stage.to_str().unwrap();
    succeeds("packaging/install", &["--root", stage, "--binary", binary]);
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_install_script_puts_everything_in_its_place_and_keeps_settings() {
    let folder = tempfile::tempdir().unwrap();
    let stage = folder.path();
    install(stage, env!("CARGO_BIN_EXE_clarion"));
    for (path, wanted) in [
        ("usr/bin/clarion", 0o755),
        ("usr/lib/systemd/system/clarion.service", 0o644),
        ("usr/lib/sysusers.d/clarion.conf", 0o644),
        ("usr/share/clarion/alerts.yaml", 0o644),
        ("usr/share/clarion/fail2ban/clarion.filter.conf", 0o644),
        ("usr/share/clarion/fail2ban/clarion.jail.conf", 0o644),
        ("usr/share/clarion/grafana-dashboard.json", 0o644),
        ("usr/share/clarion/zabbix/media_clarion.yaml", 0o644),
        ("etc/clarion", 0o750),
        ("etc/clarion/clarion.toml", 0o640),
        ("var/lib/clarion", 0o750),
    ] {
        assert_eq!(mode(&stage.join(path)), wanted, "{path}");
    }
    let installed = stage.join("usr/bin/clarion");
    let version = succeeds(installed.to_str().unwrap(), &["--version"]);
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");

    // An upgrade: another program, the operator's settings as they were.
    let settings = stage.join("etc/clarion/clarion.toml");
    std::fs::write(&settings, "time_zone = \"UTC\"\n").unwrap();
    install(stage, "/bin/true");
    assert_eq!(
        std::fs::read_to_string(&settings).unwrap(),
        "time_zone = \"UTC\"\n"
    );
    assert_eq!(
        std::fs::read(&installed).unwrap(),
        std::fs::read("/bin/true").unwrap()
    );
}

#[test]
fn the_install_script_says_what_is_wrong() {
    let stage = tempfile::tempdir().unwrap();
    let stage = stage.path().to_str().unwrap();
    for (arguments, said) in [
        (&["--root", stage, "--binary", "/nowhere"][..], "make dist"),
        (&["--rot", stage], "unknown argument: --rot"),
    ] {
        let output = run("packaging/install", arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(said), "{error}");
    }
    assert_eq!(std::fs::read_dir(stage).unwrap().count(), 0);
}

#[test]
fn the_shipped_settings_are_valid_as_they_are_and_with_every_example_switched_on() {
    let text = std::fs::read_to_string(root().join("packaging/clarion.toml")).unwrap();
    let config = Config::from_parts(&text, &[]).unwrap();
    assert_eq!(config.data_dir, Path::new("/var/lib/clarion"));
    let example = |line: &str| {
        let bare = line.strip_prefix("# ")?;
        let setting = bare.starts_with('[') || bare.split(" = ").count() == 2;
        setting.then(|| bare.to_owned())
    };
    let switched: Vec<_> = text
        .lines()
        .map(|line| example(line).unwrap_or_else(|| line.to_owned()))
        .collect();
    let config = Config::from_parts(&switched.join("\n"), &[]).unwrap();
    assert_eq!(config.trunks.len(), 1);
    assert!(config.has_time_zone() && config.http.public_url.is_some());
}

#[test]
fn the_unit_is_accepted_and_hardened() {
    let unit = std::fs::read_to_string(root().join("packaging/clarion.service")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("clarion.service");
    // The program is not installed on a machine that only tests.
    let here = unit.replace("/usr/bin/clarion", env!("CARGO_BIN_EXE_clarion"));
    assert_ne!(here, unit);
    std::fs::write(&copy, here).unwrap();
    let said = succeeds("systemd-analyze", &["verify", copy.to_str().unwrap()]);
    assert!(!said.contains("clarion.service"), "{said}");
    // 20 of 100 by systemd's own measure; a plain service has 96.
    let limits = [
        "security",
        "--offline=yes",
        "--threshold=20",
        "packaging/clarion.service",
    ];
    succeeds("systemd-analyze", &limits);

    // Whoever stops it waits for as long as the server may take.
    let config = Config::from_parts("", &[]).unwrap();
    let longest = config.http.stop_time + config.dispatch.stop_time + config.callbacks.stop_time;
    let timeout = unit
        .lines()
        .find_map(|line| line.strip_prefix("TimeoutStopSec="))
        .unwrap();
    let timeout = std::time::Duration::from_secs(timeout.parse().unwrap());
    assert!(timeout >= longest, "{longest:?}");
}

/// The program as packages have it: stripped, with its debug information beside it.
fn stripped(folder: &Path) -> String {
    let built = env!("CARGO_BIN_EXE_clarion");
    succeeds("packaging/split-debug", &[built, folder.to_str().unwrap()]);
    folder.join("clarion").to_str().unwrap().to_owned()
}

/// Makes the packages of the program as it is tested, and gives their files by their names.
fn debian_packages(folder: &Path) -> BTreeMap<String, String> {
    let binary = stripped(&folder.join("program"));
    let output = folder.join("packages");
    // Packed quickly rather than well: nobody downloads it.
    let packed = Command::new(root().join("packaging/build-deb"))
        .args(["--binary", &binary, "--output", output.to_str().unwrap()])
        .env("DPKG_DEB_COMPRESSOR_TYPE", "gzip")
        .env("DPKG_DEB_COMPRESSOR_LEVEL", "1")
        .output()
        .unwrap();
    assert!(packed.status.success(), "{packed:?}");
    let files = std::fs::read_dir(output).unwrap();
    let package = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.split_once('_')?.0.to_owned();
        Some((name, path.to_str()?.to_owned()))
    };
    let files = files.map(|entry| entry.unwrap().path());
    files.filter_map(package).collect()
}

#[test]
fn a_debian_package_holds_what_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let packages = debian_packages(folder.path());
    let package = packages["clarion"].as_str();
    let fields = succeeds("dpkg-deb", &["--field", package]);
    let version = env!("CARGO_PKG_VERSION").replace('-', "~");
    let version = format!("Version: {version}");
    for field in [
        "Package: clarion",
        &version,
        "Depends: espeak-ng, libc6 (>= 2.",
        "Recommends: ca-certificates",
    ] {
        assert!(fields.contains(field), "{field}: {fields}");
    }
    let contents = succeeds("dpkg-deb", &["--contents", package]);
    for (mode, path) in [
        ("-rwxr-xr-x root/root", "./usr/bin/clarion"),
        (
            "-rw-r--r-- root/root",
            "./usr/lib/systemd/system/clarion.service",
        ),
        ("-rw-r----- root/root", "./etc/clarion/clarion.toml"),
        ("drwxr-x--- root/root", "./var/lib/clarion/"),
        ("-rw-r--r-- root/root", "./usr/share/man/man1/clarion.1.gz"),
        (
            "-rw-r--r-- root/root",
            "./usr/share/man/man1/clarion-account-add.1.gz",
        ),
        (
            "-rw-r--r-- root/root",
            "./usr/share/bash-completion/completions/clarion",
        ),
        (
            "-rw-r--r-- root/root",
            "./usr/share/zsh/vendor-completions/_clarion",
        ),
        (
            "-rw-r--r-- root/root",
            "./usr/share/fish/vendor_completions.d/clarion.fish",
        ),
    ] {
        let listed = |line: &str| line.starts_with(mode) && line.ends_with(path);
        assert!(contents.lines().any(listed), "{path}: {contents}");
    }
    let control = folder.path().join("control");
    succeeds(
        "dpkg-deb",
        &["--control", package, control.to_str().unwrap()],
    );
    let conffiles = std::fs::read_to_string(control.join("conffiles")).unwrap();
    assert_eq!(conffiles, "/etc/clarion/clarion.toml\n");
    for script in ["postinst", "prerm"] {
        succeeds("sh", &["-n", control.join(script).to_str().unwrap()]);
    }
    let symbols = succeeds("dpkg-deb", &["--contents", &packages["clarion-dbgsym"]]);
    assert!(symbols.contains("./usr/lib/debug/.build-id/"), "{symbols}");

    // As root it warns, unless it is told that this is meant.
    let judged = ["--allow-root", "--fail-on", "error", package];
    let said = succeeds("lintian", &judged);
    assert!(!said.contains("E: "), "{said}");
}

#[test]
fn the_manual_and_the_completions_are_those_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for kind in ["man", "completions"] {
        succeeds(env!("CARGO_BIN_EXE_clarion"), &["generate", kind, path]);
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let page = read("clarion.1");
    for said in [
        "clarion\\-account(1)",
        "/etc/clarion/clarion.toml",
        "CLARION_CONFIG",
        "EXIT STATUS",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert!(read("clarion-phone.1").contains("0002"));
    for shell in ["clarion.bash", "_clarion", "clarion.fish"] {
        let completions = read(shell);
        assert!(completions.contains("rotate-token"), "{shell}");
        // What is hidden is not offered.
        for hidden in ["generate", "demo-clock-ahead"] {
            assert!(!completions.contains(hidden), "{shell} offers {hidden}");
        }
    }
    succeeds(
        "bash",
        &["-n", folder.path().join("clarion.bash").to_str().unwrap()],
    );
}

/// No engine that could build it is asked for here: what it copies and runs is checked instead.
#[test]
fn the_container_file_copies_what_is_there_and_builds_as_the_makefile_does() {
    let text = std::fs::read_to_string(root().join("Containerfile")).unwrap();
    let lines = text.replace("\\\n", " ");
    let instructions: Vec<Vec<&str>> = lines
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect();
    let folder = tempfile::tempdir().unwrap();
    install(folder.path(), "/bin/true");
    let mut copied = Vec::new();
    for words in instructions.iter().filter(|words| words[0] == "COPY") {
        let places: Vec<_> = words[1..]
            .iter()
            .filter(|word| !word.starts_with("--"))
            .collect();
        let sources = &places[..places.len() - 1];
        for source in sources {
            let there = match source.strip_prefix("/stage/") {
                Some(staged) => folder.path().join(staged),
                None => root().join(source),
            };
            assert!(there.exists(), "COPY {source}");
        }
        copied.extend(sources.iter().map(|source| (**source).to_owned()));
    }
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    for member in manifest["workspace"]["members"].as_array().unwrap() {
        let member = member.as_str().unwrap();
        let within = |source: &String| Path::new(member).starts_with(source);
        assert!(copied.iter().any(within), "{member} is not copied");
    }
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    assert!(lines.contains("RUN make dist\n"));
    assert!(
        makefile.contains("\ndist: ## "),
        "the Makefile makes no program for use"
    );
    let user = instructions
        .iter()
        .rfind(|words| words[0] == "USER")
        .unwrap();
    assert!(!user[1].starts_with('0') && user[1] != "root", "{user:?}");
    let health = instructions
        .iter()
        .find(|words| words[0] == "HEALTHCHECK")
        .unwrap();
    assert!(
        health.iter().any(|word| word.ends_with("/healthz")),
        "{health:?}"
    );
    // Only names of images: where they are fetched from is the builder's affair.
    for words in instructions.iter().filter(|words| words[0] == "FROM") {
        assert!(!words[1].contains('/'), "{words:?}");
    }
}
