module example.com/toy-operator

go 1.21
