//! `#[derive(State)]`: a type goes over its own fields.
//!
//! Every piece of state of a node implements `node::State`. The derive names each field, so that none can be
//! forgotten. A field's type says what becomes of it as time goes on: a `Time` moves with the clock, a `FlowId` may be
//! renamed, a `Stream` is a random stream, what stands behind an `Arc` never changes, and all else must be equal. A
//! field whose type says nothing does not compile. Where a number means more than its type says, an attribute names
//! the method of `node::Walk` that it is handed to.
//!
//! # Attributes of a field
//!
//! | attribute | meaning |
//! |---|---|
//! | `past`, `expired`, `wakes`, `outside` | a time, as the method of that name has it |
//! | `later(by, KIND)` | the time that is later, or the number that is greater, by so much, as `KIND` has it |
//! | `left(of, KIND)` | what is left of so many: `KIND` has the others |
//! | `ticks(span, KIND)` | a time, counted in such spans |
//! | `if_any(KIND)` | 0 stands for nothing |
//! | `flow_number` | a number that is a flow's |
//! | `flow` | what follows in this value is of this flow |
//! | `sequence`, `sequence(unit)`, `passed`, `passed(unit)` | a position of the flow in bytes |
//! | `steps`, `position`, `measured(name)` | the same in packets, both ways, or in another measure |
//! | `rest(of)` | a number that falls as `of`, which is gone over elsewhere, rises |
//! | `turn(name)`, `turn_at(place, name)`, `below(limit)`, `unused(used)` | numbers that move by themselves |
//! | `count`, `count_of`, `counted`, `counted_of` | counters |
//! | `same(value)`, `same` | this value must be equal, whatever the type says |
//! | `told`, `inherited(value)` | as the methods of these names |
//! | `slots` | slots of flows: which is which makes no difference |
//! | `when(condition, KIND, KIND)` | one if the condition holds, which must be equal, and else the other, or nothing |
//! | `(KIND, KIND)` | a tuple |
//! | `each(KIND)` | each item of a container; `_` is what the type says |
//! | `part(place)` | only this part of it |
//! | `ports` | the ports of a node |
//! | `given(value)` | what the field's type is to be given |
//! | `anew(value)` | follows from other fields, and is computed again |
//! | `by(function)` | a function goes over it |
//! | `skip("reason")` | nothing becomes of it; it is saved |
//! | `built("reason")` | nothing becomes of it, and a scenario builds it: it is not saved |
//!
//! In `each`, `item` is the item, and in a tuple `part_0` the first part.
//!
//! Numbers and times may stand in options, arrays, vectors, queues, sets and tuples of their like.
//!
//! # Attributes of a type
//!
//! | attribute | meaning |
//! |---|---|
//! | `counts` | all its fields are counters for results, unless they say otherwise |
//! | `fixed` | it never changes once it is made |
//! | `given(Type)` | what those that hold it must give: its settings |
//! | `unit(bytes)` | the unit of positions below it, in bytes |
//! | `come(bytes)` | how far the flow has come, for `passed` |
//! | `first(statement)`, `last(statement)` | before and after the fields |
//! | `refuse("reason")` | it can't be moved ahead |
//! | `unsaved("reason")`, `unsaved_if(condition, "reason")` | it can't be saved |
//!
//! `#[derive(State)]` derives `units::Saved` with it, `#[derive(Saved)]` that alone: how a state is written down and
//! read back. All fields are, whatever their attributes, but those that are `built`.
//!
//! In all of them `self` (of an enum: the fields' names), `walk` and `given` may be used.

mod saved;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Index, Result, Token, parse_macro_input};

/// See the [crate](self).
#[proc_macro_derive(State, attributes(state))]
pub fn derive_state(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let both = expand(&input).and_then(|state| Ok([state, saved::expand(&input, &quote!(node))?]));
    both.map(|both| both.into_iter().collect()).unwrap_or_else(Error::into_compile_error).into()
}

/// See the [crate](self).
#[proc_macro_derive(Saved, attributes(state))]
pub fn derive_saved(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    saved::expand(&input, &quote!(units)).unwrap_or_else(Error::into_compile_error).into()
}

/// One attribute: a name with arguments, a tuple of such, or `_`.
#[derive(Clone)]
enum Kind {
    Own,
    Tuple(Vec<Kind>),
    Named(Ident, Vec<TokenStream>),
}

impl Parse for Kind {
    fn parse(input: ParseStream<'_>) -> Result<Kind> {
        if input.parse::<Option<Token![_]>>()?.is_some() {
            return Ok(Kind::Own);
        }
        if input.peek(syn::token::Paren) {
            let inner;
            syn::parenthesized!(inner in input);
            let kinds = inner.parse_terminated(Kind::parse, Token![,])?;
            return Ok(Kind::Tuple(kinds.into_iter().collect()));
        }
        let name: Ident = input.parse()?;
        if !input.peek(syn::token::Paren) {
            return Ok(Kind::Named(name, Vec::new()));
        }
        let inner;
        syn::parenthesized!(inner in input);
        Ok(Kind::Named(name, arguments(inner.parse()?)))
    }
}

/// What stands between commas.
fn arguments(all: TokenStream) -> Vec<TokenStream> {
    let mut arguments = vec![TokenStream::new()];
    for token in all {
        match token {
            TokenTree::Punct(ref of) if of.as_char() == ',' => arguments.push(TokenStream::new()),
            token => arguments.last_mut().expect("there is one").extend([token]),
        }
    }
    arguments.retain(|of| !of.is_empty());
    arguments
}

/// What a type says of itself.
#[derive(Default)]
struct Settings {
    counts: bool,
    fixed: bool,
    given: Option<TokenStream>,
    refuse: Option<TokenStream>,
    unsaved: Option<TokenStream>,
    unsaved_if: Option<Vec<TokenStream>>,
    first: TokenStream,
    last: TokenStream,
}

/// What is said of a field: what is done before, at it, and after all fields.
#[derive(Default)]
struct Visit {
    before: TokenStream,
    at: TokenStream,
    after: TokenStream,
}

struct Derive {
    settings: Settings,
    /// The parameters of the type, by name.
    generics: Vec<String>,
    /// What must hold of generic fields.
    bounds: Vec<TokenStream>,
    given: TokenStream,
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let settings = settings(input)?;
    let given = settings.given.clone().unwrap_or_else(|| quote!(__Given));
    let mut derive = Derive { settings, generics: generics(input), bounds: Vec::new(), given };
    let body = match (&derive.settings, &input.data) {
        (Settings { fixed: true, .. }, _) => quote!(),
        (Settings { refuse: Some(why), .. }, _) => quote!(walk.refuse(#why);),
        (_, Data::Struct(of)) => derive.fields_of_struct(&of.fields)?,
        (_, Data::Enum(of)) => derive.variants(of)?,
        (_, Data::Union(_)) => return Err(Error::new_spanned(input, "a union does not say what it holds")),
    };
    let Derive { settings: Settings { first, last, given: of_its_own, .. }, bounds, given, .. } = derive;
    let (name, (_, of_type, conditions)) = (&input.ident, input.generics.split_for_impl());
    let own = input.generics.params.iter().map(|of| {
        let mut of = of.clone();
        if let syn::GenericParam::Type(of) = &mut of {
            of.default = None;
        }
        of
    });
    let more = of_its_own.is_none().then(|| quote!(__Given: ?Sized,));
    let conditions = conditions.map(|of| of.predicates.to_token_stream());
    let saved = saved::bounds(input, &quote!(node))?;
    Ok(quote! {
        #[automatically_derived]
        impl<#(#own,)* #more> node::State<#given> for #name #of_type where #conditions #(#bounds,)* #(#saved,)* {
            #[allow(clippy::all, unused_variables, unused_mut)]
            fn visit(&mut self, walk: &mut node::Walk, given: &#given) {
                #first
                #body
                #last
            }
        }
    })
}

fn settings(input: &DeriveInput) -> Result<Settings> {
    let mut settings = Settings::default();
    for kind in kinds(&input.attrs)? {
        let Kind::Named(name, args) = kind else { return Err(Error::new_spanned(&input.ident, "this is for fields")) };
        let all = quote!(#(#args),*);
        match name.to_string().as_str() {
            "counts" => settings.counts = true,
            "fixed" => settings.fixed = true,
            "given" => settings.given = Some(all),
            "refuse" => settings.refuse = Some(all),
            "unsaved" => settings.unsaved = Some(all),
            "unsaved_if" => settings.unsaved_if = Some(args),
            "unit" => settings.first.extend(quote!(walk.unit = #all;)),
            "come" => settings.first.extend(quote!(walk.come = #all;)),
            "first" => settings.first.extend(quote!(#all;)),
            "last" => settings.last.extend(quote!(#all;)),
            _ => return Err(Error::new(name.span(), "a type has no such attribute: see the crate's documentation")),
        }
    }
    Ok(settings)
}

fn kinds(attributes: &[syn::Attribute]) -> Result<Vec<Kind>> {
    let own = attributes.iter().filter(|of| of.path().is_ident("state"));
    let parse = |of: &syn::Attribute| {
        of.parse_args_with(|input: ParseStream<'_>| input.parse_terminated(Kind::parse, Token![,]))
    };
    Ok(own.map(parse).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The parameters of a type, by name.
fn generics(input: &DeriveInput) -> Vec<String> {
    input.generics.type_params().map(|of| of.ident.to_string()).collect()
}

/// Whether a type depends on a parameter.
fn depends(generics: &[String], of: &TokenStream) -> bool {
    of.clone().into_iter().any(|token| match token {
        TokenTree::Ident(name) => generics.contains(&name.to_string()),
        TokenTree::Group(group) => depends(generics, &group.stream()),
        _ => false,
    })
}

impl Derive {
    fn fields_of_struct(&mut self, fields: &Fields) -> Result<TokenStream> {
        let mut all = Visit::default();
        for (number, field) in fields.iter().enumerate() {
            let number = Index::from(number);
            let member = field.ident.as_ref().map_or(quote!(#number), |name| quote!(#name));
            self.field(field, &quote!((&mut self.#member)), &mut all)?;
        }
        let Visit { before, at, after } = all;
        Ok(quote!(#before #at #after))
    }

    fn variants(&mut self, of: &syn::DataEnum) -> Result<TokenStream> {
        let mut arms = TokenStream::new();
        for (tag, variant) in (0u64..).zip(&of.variants) {
            let mut all = Visit::default();
            let mut names = Vec::new();
            for (number, field) in variant.fields.iter().enumerate() {
                let name = field.ident.clone().unwrap_or_else(|| format_ident!("of_{number}"));
                self.field(field, &quote!(#name), &mut all)?;
                names.push(name);
            }
            let (name, Visit { before, at, after }) = (&variant.ident, all);
            let bound = match &variant.fields {
                Fields::Named(_) => quote!({ #(#names),* }),
                Fields::Unnamed(_) => quote!((#(#names),*)),
                Fields::Unit => quote!(),
            };
            arms.extend(quote!(Self::#name #bound => { walk.same(#tag); #before #at #after }));
        }
        Ok(quote!(match self { #arms }))
    }

    /// Goes over a field, whose place is a reference.
    fn field(&mut self, field: &Field, place: &TokenStream, all: &mut Visit) -> Result<()> {
        let mut kinds = kinds(&field.attrs)?;
        let kind = match kinds.pop() {
            _ if !kinds.is_empty() => return Err(Error::new_spanned(field, "one attribute a field")),
            Some(kind) => kind,
            None if self.settings.counts => Kind::Named(Ident::new("count", Span::call_site()), Vec::new()),
            None => Kind::Own,
        };
        if let Kind::Named(name, args) = &kind
            && let Some(visit) = around(name, args, place)
        {
            all.before.extend(visit.before);
            all.after.extend(visit.after);
            return Ok(());
        }
        let depends = depends(&self.generics, &field.ty.to_token_stream());
        let (of, given) = (&field.ty, &self.given);
        match &kind {
            Kind::Own if depends => self.bounds.push(quote!(#of: node::State<#given>)),
            Kind::Named(name, _) if name == "slots" && depends => {
                self.bounds.push(quote!(#of: node::walk::InSlots<#given>));
            }
            _ => {}
        }
        all.at.extend(self.visit(&kind, place, of)?);
        Ok(())
    }

    fn visit(&self, kind: &Kind, place: &TokenStream, of: &syn::Type) -> Result<TokenStream> {
        let given = &self.given;
        let (name, args) = match kind {
            Kind::Own => {
                // An error is one of the field, not of the derive.
                let span = of.span().resolved_at(Span::call_site());
                let state = quote_spanned!(span=> node::State::<#given>::visit);
                return Ok(quote!(#state(#place, walk, given);));
            }
            Kind::Tuple(kinds) => {
                let names: Vec<Ident> = (0..kinds.len()).map(|at| format_ident!("part_{at}")).collect();
                let visits = kinds.iter().zip(&names).map(|(kind, name)| self.visit(kind, &quote!(#name), of));
                let visits = visits.collect::<Result<Vec<_>>>()?;
                return Ok(quote!({ let (#(#names),*) = #place; #(#visits)* }));
            }
            Kind::Named(name, args) => (name, args),
        };
        let all = quote!(#(#args),*);
        // Arguments may name the field itself, so they come before it is borrowed.
        let names: Vec<Ident> = (0..args.len()).map(|at| format_ident!("argument_{at}")).collect();
        let each = |of: TokenStream, call: TokenStream| {
            let each = quote!(node::walk::Each::<#of>::each(#place, walk, &mut |walk, number| { #call; }););
            quote!({ #(let #names = #args;)* #each })
        };
        let numbers = |call| each(quote!(u64), call);
        let times = |call| each(quote!(node::walk::Time), call);
        Ok(match (name.to_string().as_str(), &args[..]) {
            ("past" | "expired" | "wakes" | "time", []) => times(quote!(walk.#name(number))),
            ("outside", []) => times(quote!(walk.outside(*number))),
            ("sequence", []) => numbers(quote!(walk.sequence(walk.flow, walk.unit, number))),
            ("passed", []) => numbers(quote!(walk.passed(walk.flow, walk.unit, number, walk.come / walk.unit))),
            ("passed", [_]) => numbers(quote!(walk.passed(walk.flow, argument_0, number, walk.come / argument_0))),
            ("steps" | "count_of" | "counted_of", []) => numbers(quote!(walk.#name(walk.flow, number))),
            ("sequence" | "measured", [_]) => numbers(quote!(walk.#name(walk.flow, argument_0, number))),
            ("position" | "count" | "counted" | "flow_number", []) => numbers(quote!(walk.#name(number))),
            ("turn" | "below", [_]) | ("turn_at", [_, _]) => numbers(quote!(walk.#name(#(#names,)* number))),
            ("unused", [_]) => numbers(quote!(walk.unused(number, argument_0))),
            ("flow", []) => quote!({ walk.flow(#place); walk.flow = *#place; }),
            ("told", []) => quote!(walk.told(node::walk::Number::get(*#place));),
            ("inherited", [_]) => quote!(walk.inherited(walk.flow, #all);),
            ("same", []) => quote!(walk.same(&*#place);),
            ("same", _) => quote!(#(walk.same(#args);)*),
            ("slots", []) => quote!(node::walk::InSlots::<#given>::visit_slots(#place, walk, given);),
            ("given", [_]) => quote!({ let to = #all; node::State::visit(#place, walk, to); }),
            ("part", [_]) => quote!(node::State::<#given>::visit(#all, walk, given);),
            ("ports", []) => quote!(walk.ports(#place, given);),
            ("by", [_]) => quote!(#all(#place, walk, given);),
            ("skip" | "built", [_]) => quote!(),
            _ => return self.around_kinds(name, args, place, of),
        })
    }

    /// The attributes that hold others.
    fn around_kinds(
        &self,
        name: &Ident,
        args: &[TokenStream],
        place: &TokenStream,
        of: &syn::Type,
    ) -> Result<TokenStream> {
        let parse = |args: &TokenStream| syn::parse2::<Kind>(args.clone());
        Ok(match (name.to_string().as_str(), args) {
            ("later", [by, kind]) => {
                let visit = self.visit(&parse(kind)?, &quote!((&mut then)), of)?;
                quote!({
                    let by = #by;
                    let mut then = *#place + by;
                    #visit
                    *#place = then - by;
                })
            }
            ("left", [total, kind]) => {
                let visit = self.visit(&parse(kind)?, &quote!((&mut come)), of)?;
                quote!({
                    let all = #total;
                    let mut come = all - *#place;
                    #visit
                    *#place = all - come;
                })
            }
            ("ticks", [span, kind]) => {
                let visit = self.visit(&parse(kind)?, &quote!((&mut at)), of)?;
                quote!({
                    let span = node::walk::Number::get(#span);
                    let mut at = node::walk::Time::from_ps(*#place * span);
                    #visit
                    *#place = at.ps() / span;
                })
            }
            ("if_any", [kind]) => {
                let visit = self.visit(&parse(kind)?, place, of)?;
                quote!({
                    let any = node::walk::is_any(#place);
                    walk.same(any);
                    if any { #visit }
                })
            }
            ("each", [kind]) => {
                let visit = self.visit(&parse(kind)?, &quote!(item), of)?;
                quote!(node::walk::Items::items(#place, walk, &mut |walk, item| { #visit });)
            }
            ("when", [condition, kind, other @ ..]) if other.len() < 2 => {
                let visit = self.visit(&parse(kind)?, place, of)?;
                let other = other.first().map(|kind| self.visit(&parse(kind)?, place, of)).transpose()?;
                quote!({
                    let holds: bool = #condition;
                    walk.same(holds);
                    if holds { #visit } else { #other }
                })
            }
            _ => return Err(Error::new(name.span(), "a field has no such attribute: see the crate's documentation")),
        })
    }
}

/// What is done for fields that follow from others.
fn around(name: &Ident, args: &[TokenStream], place: &TokenStream) -> Option<Visit> {
    let all = quote!(#(#args),*);
    match name.to_string().as_str() {
        "rest" => {
            let sum = Ident::new("sum", Span::mixed_site());
            // Hygiene keeps apart nothing of one expansion, so sums are named by their places.
            let sum = format_ident!("{sum}_{}", place.to_string().replace(|of: char| !of.is_alphanumeric(), "_"));
            let before = quote! {
                let #sum = node::walk::Number::get(*#place).wrapping_add(u64::from(#all));
                walk.same(#sum);
            };
            let after = quote!(node::walk::Number::set(#place, #sum.wrapping_sub(u64::from(#all))););
            Some(Visit { before, after, ..Visit::default() })
        }
        "anew" => Some(Visit { after: quote!(*#place = #all;), ..Visit::default() }),
        _ => None,
    }
}
