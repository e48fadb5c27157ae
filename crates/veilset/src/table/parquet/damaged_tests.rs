//! Files that are damaged, or have what is not read.

use super::*;

#[test]
fn what_a_later_version_has_is_not_called_damaged() {
    let good = parquet(vec![
        ("id", Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef),
        ("n", Arc::new(Int64Array::from(vec![1, 2]))),
    ]);
    let footer =
        good.len() - 8 - u32::from_le_bytes(good[good.len() - 8..][..4].try_into().unwrap()) as usize;
    // Numbers of the format are written twice as large.
    let said = |number: u8| -> Vec<String> {
        let with = |at: usize| {
            let mut other = good.clone();
            other[at] = 2 * number;
            read(&other, &UTF8, None).err().map(|e| e.to_string())
        };
        (footer..good.len() - 8).filter_map(with).collect()
    };
    let newer = said(20);
    for what in [
        "compression 20 of the format, in column 1",
        "compression 20 of the format, in column 2",
        "encoding 20 of the format, in column 2",
        "physical type 20 of the format, in column 1",
    ] {
        assert!(newer.iter().any(|said| said.contains(what)), "{what}: {newer:?}");
    }
    let lzo = "column \"n\": the column is compressed with LZO";
    assert!(said(3).iter().any(|said| said.contains(lzo)), "{:?}", said(3));
}

#[test]
fn damaged_files_are_input_errors() {
    let good = parquet(vec![
        ("id", Arc::new(StringArray::from((0..200).map(|i| format!("v{i}")).collect::<Vec<_>>()))),
        ("n", Arc::new(Int64Array::from((0..200).collect::<Vec<_>>()))),
    ]);
    let refused = |bytes: &[u8], words: &str| {
        let error = read(bytes, &UTF8, None).unwrap_err();
        assert!(matches!(&error, Error::Input(e) if e.file == "a.parquet"), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    for end in 0..good.len() {
        refused(&good[..end], if end < 12 { "" } else { "damaged or incomplete" });
    }
    refused(b"id,n\n1,2\n3,4\n5,6\n7,8\n", "not a Parquet file");
    refused(b"", "not a Parquet file");
    refused(b"PAR1PAR1", "not a Parquet file");
    refused(&[&b"PAR1\0\0\0\0"[..], b"\0\0\0\0PARE"].concat(), "encrypted");
    refused(&[&b"PAR1\0\0\0\0"[..], b"\xff\xff\xff\xffPAR1"].concat(), "damaged");
    refused(&[&b"PAR1\0\0\0\0"[..], b"\0\0\0\0PAR1"].concat(), "damaged");
    // Schemas of 5000 nested groups, and of a group with more children than there is memory for. Then a group with a
    // long name and many columns, each of which would take a copy of the name.
    let varint = |mut n: u64| {
        let mut out = Vec::new();
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
        out
    };
    let schema = |elements: &[(String, u64)]| {
        let of = |(name, children): &(String, u64)| {
            [&[0x48][..], &varint(name.len() as u64), name.as_bytes(), &[0x15], &varint(2 * children), &[0]]
                .concat()
        };
        let list: Vec<u8> = elements.iter().flat_map(of).collect();
        let head = [&[0x15, 2, 0x19, 0xfc][..], &varint(elements.len() as u64)].concat();
        let footer = [head, list, vec![0x16, 0, 0x19, 0x0c, 0]].concat();
        [&b"PAR1"[..], &footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
    };
    let element = |name: &str, children| (name.to_owned(), children);
    let deep = [vec![element("g", 1); 5000], vec![element("c", 0)]].concat();
    let many = [element("root", 1), element(&"g".repeat(200_000), 20_000)];
    let many = [many.to_vec(), vec![element("c", 0); 20_000]].concat();
    for elements in [deep, vec![element("root", 1), element("g", (1 << 31) - 1)], many] {
        refused(&schema(&elements), "damaged");
    }
    // 2^28 row groups, in a footer of a few bytes.
    let footer =
        [0x15, 2, 0x19, 0x1c, 0x48, 1, b's', 0x15, 0, 0, 0x16, 0, 0x19, 0xfc, 0x80, 0x80, 0x80, 0x80, 1, 0];
    refused(&[&b"PAR1"[..], &footer, &[footer.len() as u8, 0, 0, 0], b"PAR1"].concat(), "damaged");
}

#[test]
fn ten_thousand_damaged_files_give_errors_or_tables() {
    let mut rng = crate::rng::Prng::from_seed(&[9; 32]);
    let ids: Vec<_> = (0..60).map(|i| format!("v{}", i % 20)).collect();
    let rows = batch(vec![
        ("id", Arc::new(StringArray::from(ids))),
        ("n", Arc::new(Int64Array::from((0..60).map(|i| (i % 3 > 0).then_some(i)).collect::<Vec<_>>()))),
    ]);
    let files = [
        WriterProperties::builder().build(),
        WriterProperties::builder().set_compression(Compression::SNAPPY).build(),
        WriterProperties::builder().set_compression(Compression::ZSTD(Default::default())).build(),
        WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .build(),
    ]
    .map(|properties| file(&rows, properties));
    let (mut refused, mut accepted) = (0, 0);
    for good in &files {
        for _ in 0..2500 {
            let mut bad = good.clone();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(bad.len() as u64) as usize;
                bad[at] = [bad[at] ^ 1 << rng.below(8), 0xff, 0x7f, 0][rng.below(4) as usize];
            }
            match read(&bad, &UTF8, None) {
                Ok(table) => {
                    accepted += 1;
                    assert!(table.rows() <= 60);
                    assert_eq!(texts(&table).len(), table.rows());
                }
                Err(Error::Input(_)) => refused += 1,
                Err(e) => panic!("{e}"),
            }
        }
    }
    assert!(refused > 1000 && accepted > 100, "{refused} {accepted}");
}
