// Command etcd: the server module exposes its main, so no part of etcd's own repository root is needed.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
