//! Starts and stops the real local control plane.
