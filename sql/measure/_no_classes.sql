-- anon._no_classes: a bit string with a bit for each class of a block, none of them set.
CREATE OR REPLACE MACRO anon._no_classes(block_classes) AS repeat('0', block_classes::INTEGER)::BIT;
