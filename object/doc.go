// Package object keeps large bytes outside of the database: outputs of tools, attachments, archives and
// backups. Open takes a location and returns a continuo.ObjectStore over a folder or over a bucket of an
// S3-compatible service.
//
// In a folder, an object is one file below its name: conv_1/out_2 is FOLDER/conv_1/out_2. What is being
// written lies in FOLDER/~new, a name that no object can have, and is renamed when all of it is on the disk.
// In a bucket, an object's key is the prefix of the location and its name.
//
// Pitfalls: in a folder, no object can have a name with which another's begins, up to a slash ("a" and
// "a/b"). On file systems that do not tell A from a, neither do names. A file that another program puts into the
// folder or the bucket is an object, if its name could be one. What is kept is not checked when it is read:
// whoever keeps an object knows its hash.
package object
