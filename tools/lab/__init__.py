"""./dev lab: an emulated cluster on one machine. docs/design/0022-lab.md says how and why."""
