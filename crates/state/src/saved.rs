//! `units::Saved`: each field that is not built is written and read, in order.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Index, Result};

use crate::{Kind, depends, generics, kinds, settings};

/// A field: what it is called in an expression and to a person, and whether it is saved.
struct Member<'a> {
    field: &'a Field,
    name: TokenStream,
    bound: Ident,
    shown: Option<String>,
    saved: bool,
}

fn members(fields: &Fields) -> Result<Vec<Member<'_>>> {
    let built = |kind: &Kind| matches!(kind, Kind::Named(name, _) if name == "built");
    let mut members = Vec::new();
    for (number, field) in fields.iter().enumerate() {
        let index = Index::from(number);
        members.push(Member {
            field,
            name: field.ident.as_ref().map_or(quote!(#index), ToTokens::to_token_stream),
            bound: format_ident!("of_{number}"),
            shown: field.ident.as_ref().map(|name| name.to_string().trim_start_matches("r#").to_owned()),
            saved: !kinds(&field.attrs)?.iter().any(built),
        });
    }
    Ok(members)
}

/// Conditions on generic fields.
pub fn bounds(input: &DeriveInput, root: &TokenStream) -> Result<Vec<TokenStream>> {
    if settings(input)?.unsaved.is_some() {
        return Ok(Vec::new());
    }
    let all: Vec<&Fields> = match &input.data {
        Data::Struct(of) => vec![&of.fields],
        Data::Enum(of) => of.variants.iter().map(|of| &of.fields).collect(),
        Data::Union(_) => return Err(Error::new_spanned(input, "a union does not say what it holds")),
    };
    let generics = generics(input);
    let mut bounds = Vec::new();
    for fields in all {
        let saved = members(fields)?.into_iter().filter(|of| of.saved).map(|of| of.field.ty.to_token_stream());
        bounds.extend(saved.filter(|of| depends(&generics, of)).map(|of| quote!(#of: #root::Saved)));
    }
    Ok(bounds)
}

/// A call of a function of the field's type. An error is one of the field, not of the derive.
fn call(root: &TokenStream, of: &Field, function: &str) -> TokenStream {
    let (kind, function) = (&of.ty, Ident::new(function, proc_macro2::Span::call_site()));
    let span = of.ty.span().resolved_at(proc_macro2::Span::call_site());
    quote_spanned!(span=> <#kind as #root::Saved>::#function)
}

/// How fields behind such names are written, read, and made.
fn parts(root: &TokenStream, what: &str, members: &[Member<'_>]) -> [TokenStream; 3] {
    let (mut save, mut load, mut make) = (TokenStream::new(), TokenStream::new(), TokenStream::new());
    let newtype = members.len() == 1 && members[0].shown.is_none();
    for Member { field, name, bound, shown, saved } in members {
        let shown = shown.clone().unwrap_or_else(|| name.to_string());
        if !saved {
            let what = format!("{what}::{shown}");
            make.extend(quote!(#name: from.built(#what)?,));
            continue;
        }
        let [to_save, to_load, to_make] = ["save", "load", "make"].map(|of| call(root, field, of));
        let named = (!newtype).then(|| quote!(to.field(#shown);));
        save.extend(quote!(#named #to_save(#bound, to);));
        load.extend(quote!(#to_load(#bound, from)?;));
        make.extend(quote!(#name: #to_make(from)?,));
    }
    if !newtype {
        save = quote!(to.begin(); #save to.end(););
    }
    [save, load, make]
}

fn pattern(members: &[Member<'_>]) -> TokenStream {
    let bound = members.iter().map(|Member { name, bound, saved, .. }| match saved {
        true => quote!(#name: #bound),
        false => quote!(#name: _),
    });
    quote!({ #(#bound),* })
}

/// The implementation, where `root` names what holds the trait.
pub fn expand(input: &DeriveInput, root: &TokenStream) -> Result<TokenStream> {
    let of_type = settings(input)?;
    let name = &input.ident;
    let [save, load, make] = match (&of_type.unsaved, &input.data) {
        (Some(why), _) => [quote!(to.refuse(#why);), quote!(from.built::<()>(#why)), quote!(from.built(#why))],
        (None, Data::Struct(of)) => {
            let members = members(&of.fields)?;
            let [save, load, make] = parts(root, &name.to_string(), &members);
            let pattern = pattern(&members);
            [
                quote!(let Self #pattern = self; #save),
                quote!(let Self #pattern = self; #load Ok(())),
                quote!(Ok(Self { #make })),
            ]
        }
        (None, Data::Enum(of)) => variants(root, of)?,
        (None, Data::Union(_)) => return Err(Error::new_spanned(input, "a union does not say what it holds")),
    };
    let refuse = match of_type.unsaved_if.as_deref() {
        None => quote!(),
        Some([condition, why]) => quote!(if #condition { to.refuse(#why); }),
        Some(_) => return Err(Error::new_spanned(input, "unsaved_if: a condition and a reason")),
    };
    let bounds = bounds(input, root)?;
    let (of_impl, of_name, conditions) = input.generics.split_for_impl();
    let conditions = conditions.map(|of| of.predicates.to_token_stream());
    Ok(quote! {
        #[automatically_derived]
        #[allow(clippy::all, clippy::pedantic, unused_variables, private_bounds)]
        impl #of_impl #root::Saved for #name #of_name where #conditions #(#bounds,)* {
            fn save(&self, to: &mut #root::saved::Saver) {
                #refuse
                #save
            }

            fn load(&mut self, from: &mut #root::saved::Loader<'_>) -> Result<(), #root::saved::Damaged> {
                #load
            }

            fn make(from: &mut #root::saved::Loader<'_>) -> Result<Self, #root::saved::Damaged> {
                #make
            }
        }
    })
}

/// An alternative that is the same is read over, because a scenario may have built it; another is made.
fn variants(root: &TokenStream, of: &syn::DataEnum) -> Result<[TokenStream; 3]> {
    let (mut save, mut load, mut make) = (TokenStream::new(), TokenStream::new(), TokenStream::new());
    for (tag, variant) in (0u64..).zip(&of.variants) {
        let members = members(&variant.fields)?;
        let (name, shown) = (&variant.ident, variant.ident.to_string());
        let has_fields = !members.is_empty();
        let [to_save, to_load, to_make] = parts(root, &shown, &members);
        let pattern = pattern(&members);
        let fields = has_fields.then(|| quote!(#to_save to.end();));
        save.extend(quote!(Self::#name #pattern => { to.variant(#tag, #shown, #has_fields); #fields }));
        load.extend(quote!((#tag, Self::#name #pattern) => { #to_load return Ok(()); }));
        make.extend(quote!(#tag => Self::#name { #to_make },));
    }
    Ok([
        quote!(match self { #save }),
        quote! {
            let place = from.place();
            match (from.number()?, &mut *self) {
                #load
                _ => {}
            }
            from.back_to(place);
            *self = #root::Saved::make(from)?;
            Ok(())
        },
        quote!(Ok(match from.number()? { #make _ => return Err(from.damaged("no such alternative")) })),
    ])
}
