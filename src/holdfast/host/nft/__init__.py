"""nftables."""
