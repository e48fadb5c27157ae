//! Mutants from the syntax: an operator replaced, a statement deleted, a function that returns at once.

use crate::Result;
use crate::patch::{Edit, Sources, module, package};
use crate::table::Judged;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ReturnType, Stmt, Type, UnOp};

/// A place where the syntax allows a change.
#[derive(Clone)]
pub struct Candidate {
    file: String,
    function: String,
    /// The line number, from 1.
    line: usize,
    range: Range<usize>,
    after: String,
    statement: bool,
    /// The description of the change.
    change: String,
}

impl Candidate {
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the change of the source, as mutant number `switch`.
    pub fn edit(&self, switch: usize) -> Edit {
        let Candidate { file, range, after, statement, .. } = self.clone();
        Edit { file, start: range.start, end: range.end, switch, after, statement, name: self.describe() }
    }

    /// Returns the common prefix of the names of its module's tests.
    pub fn module(&self) -> String {
        let module = module(&self.file);
        // The tests of a kernel's parts are in the kernel's module.
        match (&package(&self.file)[..], module.split_once("::")) {
            ("veilset-kernels", Some((kernel, _))) => format!("{kernel}::"),
            _ => module,
        }
    }

    pub fn is(&self, judged: &Judged) -> bool {
        judged.file == self.file && judged.function == self.function && judged.change == self.change
    }

    pub fn describe(&self) -> String {
        format!("{}:{} in {}: {}", self.file, self.line, self.function, self.change)
    }
}

/// Returns all candidates in files whose path contains one of `patterns`.
pub fn candidates(sources: &Sources, patterns: &[String]) -> Result<Vec<Candidate>> {
    let mut all = Vec::new();
    for (file, text) in sources {
        let for_tests = ["tests.rs", "/testing.rs", "/oracle.rs"];
        let tests = for_tests.iter().any(|end| file.ends_with(end)) || file.contains("/tests/");
        if tests || !patterns.iter().any(|pattern| file.contains(pattern)) {
            continue;
        }
        let parsed = syn::parse_file(text).map_err(|e| format!("{file}: {e}"))?;
        let mut finder = Finder { file, text, function: Vec::new(), found: &mut all };
        finder.visit_file(&parsed);
    }
    Ok(all)
}

/// Draws `n` candidates in an order that depends on `seed` and on the candidates. Among several that overlap without one
/// containing the other, or of which one replaces a statement and another the same text as an expression, only the first is
/// drawn.
pub fn draw(mut all: Vec<Candidate>, n: usize, seed: &str) -> Vec<Candidate> {
    all.sort_by_cached_key(|candidate| {
        let mut hasher = DefaultHasher::new();
        (seed, candidate.describe(), candidate.range.start).hash(&mut hasher);
        hasher.finish()
    });
    let mut drawn: Vec<Candidate> = Vec::new();
    for candidate in all {
        if drawn.len() == n {
            break;
        }
        let (a, in_file) = (&candidate.range, |other: &&Candidate| other.file == candidate.file);
        let clash = drawn.iter().filter(in_file).any(|other| {
            let b = &other.range;
            let overlap = a.start < b.end && b.start < a.end;
            let nested = a.start <= b.start && b.end <= a.end || b.start <= a.start && a.end <= b.end;
            overlap && !nested || (a == b && candidate.statement != other.statement)
        });
        if !clash {
            drawn.push(candidate);
        }
    }
    drawn
}

struct Finder<'a> {
    file: &'a str,
    text: &'a str,
    function: Vec<String>,
    found: &'a mut Vec<Candidate>,
}

impl Finder<'_> {
    fn source(&self, node: &impl Spanned) -> &str {
        &self.text[node.span().byte_range()]
    }

    fn found(&mut self, node: &impl Spanned, statement: bool, after: String, change: String) {
        self.found.push(Candidate {
            file: self.file.into(),
            function: self.function.last().cloned().unwrap_or_default(),
            line: node.span().start().line,
            range: node.span().byte_range(),
            after,
            statement,
            change,
        });
    }

    /// Returns whether to skip code with these attributes, because it runs only in tests or only on other systems.
    fn skips(attributes: &[syn::Attribute]) -> bool {
        attributes.iter().any(|attribute| match &attribute.meta {
            syn::Meta::List(list) if list.path.is_ident("cfg") => {
                let condition = list.tokens.to_string();
                condition.contains("test") || condition == "not (unix)"
            }
            meta => meta.path().is_ident("test"),
        })
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        self.function.push(signature.ident.to_string());
        if signature.constness.is_none() {
            for value in early_values(&signature.output) {
                // This replaces the whole body, which stays as the other branch.
                let change = format!("returns {value} at once");
                if let (Some(first), Some(last)) = (block.stmts.first(), block.stmts.last()) {
                    let range = first.span().byte_range().start..last.span().byte_range().end;
                    if self.text[range.clone()] == value {
                        continue;
                    }
                    let line = first.span().start().line;
                    self.found.push(Candidate {
                        file: self.file.into(),
                        function: signature.ident.to_string(),
                        line,
                        range,
                        after: value,
                        statement: true,
                        change,
                    });
                }
            }
            visit::visit_block(self, block);
        }
        self.function.pop();
    }
}

/// Returns values that a function with this type can return.
fn early_values(output: &ReturnType) -> Vec<String> {
    let ReturnType::Type(_, output) = output else { return vec!["()".into()] };
    let Type::Path(path) = &**output else { return Vec::new() };
    let Some(last) = path.path.segments.last() else { return Vec::new() };
    let argument = match &last.arguments {
        syn::PathArguments::AngleBracketed(list) => list.args.first().cloned(),
        _ => None,
    };
    let unit =
        matches!(&argument, Some(syn::GenericArgument::Type(Type::Tuple(tuple))) if tuple.elems.is_empty());
    let values: &[&str] = match last.ident.to_string().as_str() {
        "bool" => &["true", "false"],
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i128" => &["0", "1"],
        "Result" if unit => &["Ok(())"],
        "Vec" => &["Vec::new()"],
        "Secrets" => &["Secrets::zeros(0)"],
        _ => &[],
    };
    values.iter().map(|value| (*value).into()).collect()
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !Self::skips(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !Self::skips(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !Self::skips(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !Self::skips(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    // Code that the compiler evaluates cannot be switched.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(expression, semicolon) = statement {
            let deletable = match expression {
                Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_) | Expr::Try(_) | Expr::Binary(_) => {
                    semicolon.is_some()
                }
                Expr::ForLoop(_) => true,
                Expr::If(branch) => branch.else_branch.is_none(),
                _ => false,
            };
            if deletable {
                let words: Vec<&str> = self.source(statement).split_whitespace().collect();
                let change = format!("deletes {}", shortened(&words.join(" ")));
                self.found(statement, true, String::new(), change);
            }
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let others: &[&str] = match binary.op {
            BinOp::Eq(_) => &["!="],
            BinOp::Ne(_) => &["=="],
            BinOp::Lt(_) => &["<=", ">"],
            BinOp::Le(_) => &["<", ">"],
            BinOp::Gt(_) => &[">=", "<"],
            BinOp::Ge(_) => &[">", "<"],
            BinOp::And(_) => &["||"],
            BinOp::Or(_) => &["&&"],
            BinOp::Add(_) => &["-"],
            BinOp::Sub(_) => &["+"],
            BinOp::Mul(_) => &["+"],
            BinOp::Div(_) => &["*"],
            BinOp::Rem(_) => &["/"],
            BinOp::BitXor(_) => &["|"],
            BinOp::BitAnd(_) => &["|"],
            BinOp::BitOr(_) => &["&"],
            BinOp::Shl(_) => &[">>"],
            BinOp::Shr(_) => &["<<"],
            BinOp::AddAssign(_) => &["-="],
            BinOp::BitXorAssign(_) => &["|=", "&="],
            BinOp::BitAndAssign(_) => &["|="],
            BinOp::BitOrAssign(_) => &["&="],
            _ => &[],
        };
        let assigns = self.source(&binary.op).len() > 1
            && self.source(&binary.op).ends_with('=')
            && !["==", "!=", "<=", ">="].contains(&self.source(&binary.op));
        for other in others {
            let (left, right) = (self.source(&binary.left), self.source(&binary.right));
            let after = match assigns {
                true => format!("{left} {other} {right}"),
                false => format!("({left}) {other} ({right})"),
            };
            let text = self.source(binary).split_whitespace().collect::<Vec<_>>().join(" ");
            let change = format!("{other} for {} in {}", self.source(&binary.op), shortened(&text));
            self.found(binary, false, after, change);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if let UnOp::Not(_) = unary.op {
            let after = self.source(&unary.expr).to_string();
            let change = format!("no ! in {}", shortened(self.source(unary)));
            self.found(unary, false, after, change);
        }
        visit::visit_expr_unary(self, unary);
    }
}

/// Shortens a piece of code, but keeps it recognisable.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(70) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.into(),
    }
}
