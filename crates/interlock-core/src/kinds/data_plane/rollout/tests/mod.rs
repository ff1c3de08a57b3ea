mod certificates;
mod explored;
mod phases;
mod scenarios;
mod world;
