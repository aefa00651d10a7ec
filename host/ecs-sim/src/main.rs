//! A stateful simulator of ECS, VPC, CS, RAM and STS over real HTTP.
fn main() {}
