"""What is shared, and when: templates, merged templates, plans and the benefit model.

The optimizer takes facts in and gives decisions out. It owns its input, the `Template`, and never imports the engine.
"""

from optimizer.template import Final, Guard, Template, Transition

__all__ = ["Final", "Guard", "Template", "Transition"]
