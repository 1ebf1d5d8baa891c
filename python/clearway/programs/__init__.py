"""Programs from outside of Clearway's tree: the crates they are built of, how they are asked, whose may run."""
