//! Recomputes the published figures on which the models rest.

use fastpath::model::publications;

fn main() {
    let figures = publications::results();
    let passed = figures.iter().filter(|figure| figure.pass).count();
    println!("{passed} of {} published figures are reproduced", figures.len());
    for figure in figures.iter().filter(|figure| !figure.pass) {
        println!("missed: {}, {}: {}", figure.publication, figure.place, figure.quantity);
    }
}
