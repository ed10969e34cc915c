//! Point and range filters over sorted byte keys.
