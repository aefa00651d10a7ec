//! Decisions: requirements, scheduling, disruption and their explanations. Pure, synchronous, deterministic.
