"""A cluster of the service on one machine, with Patroni, etcd, HAProxy and Valkey."""
