"""The SIMD operator: queries of equal windows side by side, one vector element each."""
