//! The fenced blocks of a Markdown page, and what their info strings ask for.
//!
//! An info string is a language, and words after commas: `sh,root`, `text,output`,
//! `toml,file=net.toml`. `docs/internals/testing.md` explains them.

/// A fenced block.
pub(crate) struct Block {
    /// The line of the opening fence, from 1.
    pub(crate) line: usize,
    /// The first word of the info string; empty without one.
    pub(crate) language: String,
    /// The other words.
    words: Vec<String>,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|own| own == word)
    }

    /// The value of a word `key=value`.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    /// The words that mean nothing.
    pub(crate) fn unknown(&self) -> Vec<&str> {
        let known = |word: &str| {
            ["root", "no-run", "output", "like"].contains(&word)
                || ["file=", "needs=", "exit="].iter().any(|key| word.starts_with(key))
        };
        self.words.iter().map(String::as_str).filter(|word| !known(word)).collect()
    }
}

/// Returns the blocks of a page. A block that is not closed is an `Err` with its line.
pub(crate) fn of(page: &str) -> Result<Vec<Block>, usize> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in page.lines().enumerate() {
        match (open.take(), line.strip_prefix("```")) {
            (None, Some(info)) => {
                let mut words = info.split(',').map(|word| word.trim().to_owned());
                let language = words.next().unwrap_or_default();
                open = Some(Block { line: index + 1, language, words: words.collect(), text: String::new() });
            }
            (Some(block), Some("")) => blocks.push(block),
            (Some(mut block), _) => {
                block.text += line;
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    open.map_or(Ok(blocks), |block| Err(block.line))
}

/// A text in which every number is `#`, and every run of blanks or dashes one of them, without
/// signs and marks of a judgement: what two runs of a measurement have in common.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut short = String::new();
    let mut last = ' ';
    // A verdict has its reason in the same line.
    let lines = text.lines().map(|line| if line.starts_with("verdict: ") { "verdict:" } else { line });
    let text = lines.collect::<Vec<_>>().join("\n");
    for c in text.trim().chars() {
        let c = match c {
            '+' | '(' | ')' | '!' => continue,
            // The sign of a number.
            '-' if last == ' ' => continue,
            '0'..='9' => '#',
            // The point of a number, and a percentage that is whole in one run only.
            '.' | ',' if last == '#' => continue,
            c if c.is_whitespace() => ' ',
            c => c,
        };
        if !(c == last && ['#', ' ', '─', '═', '-'].contains(&c)) {
            short.push(c);
        }
        last = c;
    }
    short.truncate(short.trim_end().len());
    short
}

#[test]
fn blocks_have_languages_words_and_lines() {
    let page = "a\n```sh,root,needs=ping\nping b\n```\ntext\n```\nplain\n```\n";
    let blocks = of(page).unwrap();
    assert_eq!(blocks.iter().map(|block| block.line).collect::<Vec<_>>(), [2, 6]);
    assert!(
        blocks[0].has("root") && blocks[0].value("needs") == Some("ping") && blocks[0].unknown().is_empty()
    );
    assert_eq!((blocks[1].language.as_str(), blocks[1].text.as_str()), ("", "plain\n"));
    assert_eq!(of("```sh\nx\n").err(), Some(1));
}

#[test]
fn outputs_that_differ_in_numbers_only_are_alike() {
    assert_eq!(without_numbers("rtt  270.2 ms   ok\n"), without_numbers("rtt 9 ms ok"));
    let marked = "+0.10% (-2.03%) !\nverdict: FAIL: outside the tolerance: a → b (RTT)";
    assert_eq!(without_numbers(marked), without_numbers("-0.1%  +0.03%\nverdict: pass"));
    assert_ne!(without_numbers("rtt 270.2 ms ok"), without_numbers("rtt 270.2 ms NOT ok"));
}
