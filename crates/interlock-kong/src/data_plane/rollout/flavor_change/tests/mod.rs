mod edits;
mod moves;
mod outages;
mod producers;
