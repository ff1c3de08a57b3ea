mod certificates;
mod explored;
mod history;
mod phases;
mod routes;
mod scenarios;
mod take_over;
mod world;
