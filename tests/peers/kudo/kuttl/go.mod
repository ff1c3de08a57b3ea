// The packages of kuttl that the `test` command of KUDO's client imports, without what they do.
module github.com/kudobuilder/kuttl

go 1.26.0
