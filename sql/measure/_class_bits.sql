-- anon._class_bits: an aggregate: the classes of a block as a bit string in which their bits are set.
CREATE OR REPLACE MACRO anon._class_bits(block_classes, class) AS
    bit_or(set_bit(repeat('0', block_classes::INTEGER)::BIT, class::INTEGER, 1));
