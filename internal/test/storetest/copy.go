package storetest

import (
	"maps"
	"slices"
)

// Copy returns a store of its own with the bytes that m holds now, as a backup of a folder is. It is not
// open: [Memory.Reopen] opens it.
func (m *Memory) Copy() *Memory {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	disk := &memoryDisk{checkpoint: m.disk.checkpoint, ledger: slices.Clone(m.disk.ledger),
		rows: maps.Clone(m.disk.rows), models: maps.Clone(m.disk.models)}
	return &Memory{disk: disk, closed: true, failed: make(chan struct{})}
}
