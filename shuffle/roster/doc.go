// Package roster keeps the list that ties the parts of an operator's folder together, under trust split: the operator's
// key, the folder, and the file of marks of each task that the operator ever worked on.
//
// Each part has a random [ID], drawn when the part was made, that distinguishes it from every other. A folder in which
// a part is missing, or belongs to another folder, is not the one in which its identity worked, and could release again
// what it does not know. The documentation of the two folders' packages states what they refuse.
//
// A list that was copied together with all the files that it names differs from its original in the place of the key's
// file on its disk (package internal/disk), which a copy of files does not keep, and in the processes that used it. A
// copy of the whole disk or machine keeps the place too: nothing distinguishes it from the original.
package roster
