// Package object stores large data outside of the database: outputs of tools, attachments, archives and
// backups. Open takes a location and returns a continuo.ObjectStore over a folder or over a bucket of an
// S3-compatible service.
//
// In a folder, an object is one file with the object's name as its path: conv_1/out_2 is FOLDER/conv_1/out_2.
// An object is first written to FOLDER/~new, a name that no object can have, and renamed when all of it is on
// the disk. In a bucket, an object's key is the prefix of the location and its name.
//
// Pitfalls: in a folder, an object's name cannot be a folder in another's name ("a" and "a/b"). On
// case-insensitive file systems, names are case-insensitive. A file that another program puts into the folder
// or the bucket is an object, if its name is valid. Reads do not verify the content: the caller has the
// object's hash.
package object
