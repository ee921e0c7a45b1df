-- The terms of a document include those of the periods of its project that it was added in, by which the newest documents with a
-- common word are found. Documents that there are have none: the index of words is made again, in the background.

TRUNCATE continuo.documents;

UPDATE continuo.conversations SET indexed_seq = fork_seq, indexed_title = NULL
WHERE NOT deleted AND (indexed_seq <> fork_seq OR indexed_title IS NOT NULL);
