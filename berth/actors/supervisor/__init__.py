"""The supervisor: who runs, who is started again."""
