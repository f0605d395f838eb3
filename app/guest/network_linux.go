package guest

import "syscall"

// The magic numbers of file systems on which another machine may write too, or locks do not hold (statfs(2)).
var networks = map[uint32]bool{
	0x6969: true, 0x517b: true, 0xff534d42: true, 0xfe534d42: true, 0x564c: true, 0x01021997: true, 0x5346414f: true, 0x6b414653: true,
	0x00c36400: true, 0x73757245: true, 0x0bd00bd0: true, 0x7461636f: true, 0x01161970: true, 0x013111a8: true,
}

func onNetwork(path string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(path, &s) == nil && networks[uint32(s.Type)] //nolint:gosec,unconvert // the numbers are of 32 bits, the field's type differs
}
