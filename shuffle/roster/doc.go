// Package roster is the list by which the parts of an operator's folder know each other, under trust split: the
// operator's key, the folder, and of each task that it ever worked on the file of its marks.
//
// Each is told from every copy and every other by a random [ID] that was drawn when it was made. A folder in which a
// part is missing, or is of another folder, is not the one in which its identity worked, and what it does not know
// could be released again. The packages of the two folders say what they refuse.
//
// A list that was copied together with all that it names cannot be told from the one that was copied.
package roster
