"""Mirror a vault with rsync, guarded against an emptied source."""
