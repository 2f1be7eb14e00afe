"""What a formula means before data is read: types, rewritings, what is propositional, comparisons and terms."""
