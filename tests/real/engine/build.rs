// Compiles the C shim, archives it, and links it statically into the engine together with -lnccl, as engines with a
// CUDA shim do. ENGINE_NCCL_LIB_DIR is a folder that holds libnccl.so; the SONAME of that file becomes DT_NEEDED.
use std::env;
use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(status.success(), "{command:?}: {status}");
}

fn main() {
    println!("cargo:rerun-if-changed=shim.c");
    println!("cargo:rerun-if-env-changed=CC");
    println!("cargo:rerun-if-env-changed=ENGINE_NCCL_LIB_DIR");

    let out = env::var("OUT_DIR").unwrap();
    let nccl = env::var("ENGINE_NCCL_LIB_DIR").expect("ENGINE_NCCL_LIB_DIR: a folder with libnccl.so");
    let cc = env::var("CC").unwrap_or_else(|_| "cc".into());
    let object = Path::new(&out).join("shim.o");
    let archive = Path::new(&out).join("libshim.a");

    run(Command::new(cc).args(["-O2", "-fPIC", "-Wall", "-Wextra", "-c", "shim.c", "-o"]).arg(&object));
    run(Command::new("ar").arg("rcs").arg(&archive).arg(&object));

    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-search=native={nccl}");
    println!("cargo:rustc-link-lib=static=shim");
    println!("cargo:rustc-link-lib=dylib=nccl");
}
