//! Links the module for Node.js.

fn main() {
    napi_build::setup();
}
