"""Simulated engines and claims, for trying Berth without a GPU."""
