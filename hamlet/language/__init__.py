"""The language: from text to what it means; nothing here knows events or a kernel. Source: docs/language.md."""
