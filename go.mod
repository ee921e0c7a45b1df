module github.com/continuo-log/continuo

go 1.26
