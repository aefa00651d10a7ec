//! Alibaba Cloud: the signed client and what is built on it.
