"""Result expressions, HAVING and TOP: over columns of closed windows, and over single values where those do not do."""
