"""nbgrader's side: its gradebook, its commands, its pages; everything of ours that knows nbgrader."""
