//! A small engine with two paths to libnccl: the shim's (linked, DT_NEEDED libnccl.so.2) and cudarc's (opened at run
//! time under a name that cudarc composes).
//!
//! engine              asks both paths for their version and lists the libnccl files that are mapped; needs no GPU
//! engine decode       makes a communicator with the shim; needs a GPU
//! engine collective   makes a communicator of one rank with cudarc and reduces with it; needs a GPU

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::fs;
use std::process::ExitCode;

extern "C" {
    fn shim_version(version: *mut c_int) -> c_int;
    fn shim_unique_id(id: *mut [u8; 128]) -> c_int;
    fn shim_ctx_create(id: *const [u8; 128], nranks: c_int, rank: c_int, ctx: *mut *mut u8) -> c_int;
    fn shim_ctx_destroy(ctx: *mut u8) -> c_int;
}

fn versions() -> ExitCode {
    let mut linked: c_int = 0;
    let result = unsafe { shim_version(&mut linked) };
    println!("shim {linked} (result {result})");

    let opened = match cudarc::nccl::result::get_nccl_version() {
        Ok(version) => version,
        Err(error) => {
            eprintln!("cudarc: {error:?}");
            return ExitCode::FAILURE;
        }
    };
    println!("cudarc {opened}");

    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let files: BTreeSet<&str> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .filter(|path| path.contains("nccl"))
        .collect();
    for file in files {
        println!("mapped {file}");
    }
    ExitCode::SUCCESS
}

/// The decode role's context, made by the shim.
fn decode() -> ExitCode {
    let mut id = [0u8; 128];
    let mut ctx = std::ptr::null_mut();
    let result = unsafe {
        match shim_unique_id(&mut id) {
            0 => shim_ctx_create(&id, 1, 0, &mut ctx),
            error => error,
        }
    };
    println!("shim context: result {result}");
    unsafe { shim_ctx_destroy(ctx) };
    ExitCode::from(u8::from(result != 0))
}

/// The prefill role's communicator, made and used by cudarc.
fn collective() -> Result<(), Box<dyn std::error::Error>> {
    let context = cudarc::driver::CudaContext::new(0)?;
    let stream = context.default_stream();
    let id = cudarc::nccl::Id::new().map_err(|e| format!("unique id: {e:?}"))?;
    let comm = cudarc::nccl::Comm::from_rank(stream.clone(), 0, 1, id)
        .map_err(|e| format!("communicator: {e:?}"))?;
    let source = stream.clone_htod(&[1.0f32, 2.0, 3.0, 4.0])?;
    let mut sum = stream.alloc_zeros::<f32>(4)?;
    comm.all_reduce(&source, &mut sum, &cudarc::nccl::ReduceOp::Sum)
        .map_err(|e| format!("all-reduce: {e:?}"))?;
    println!("sum {:?}", stream.clone_dtoh(&sum)?);
    Ok(())
}

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => versions(),
        Some("decode") => decode(),
        Some("collective") => match collective() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        Some(other) => {
            eprintln!("engine: unknown mode {other}");
            ExitCode::from(2)
        }
    }
}
