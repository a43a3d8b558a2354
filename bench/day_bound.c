/* SPDX-License-Identifier: Apache-2.0 */
/* day_bound.c - what no scheduler can beat: a lower bound of the average wait of given jobs.
 *
 *     bench_day_bound GPUS GUESS ROUNDS <jobs     prints seconds; a line is: submit, run time, GPUs
 *
 * The scheduler may know all run times in advance, stop and move jobs at will and at no cost, and a
 * job may run on any part of its GPUs at a time, wherever they are. A job of p seconds that never
 * has more than its g GPUs ends no earlier than p/2 after the mean of the times at which its work
 * is done. So the sum of these means, made least, bounds the sum of ends from below. That is a flow
 * of work into GPU time. The bound of the flow: with a price on every half second each job buys the
 * cheapest time it can get, by itself, and what all GPU time is worth at these prices is taken off.
 * Every price gives a valid bound; prices rise where too much is bought (subgradient steps towards
 * GUESS), and the best bound is printed. */
#include <stdio.h>
#include <stdlib.h>

#define SLOT_S 0.5
#define SLOTS 2000
#define JOBS 100000
#define HALVINGS 36

struct job {
    double submit, run, gpus;
};

static struct job jobs[JOBS];
static double price[SLOTS], bought[SLOTS]; /* per GPU-second; GPU-seconds */

struct span {
    double from, len;
};

/* Of slot s, what a job buys that pays for times up to 'limit': early ones are worth more to it. */
static struct span in_slot(const struct job *j, int s, double limit)
{
    const double from = s * SLOT_S > j->submit ? s * SLOT_S : j->submit;
    const double end = (s + 1) * SLOT_S, to = limit - price[s] * j->run * j->gpus;

    return (struct span){from, to <= from ? 0 : (to < end ? to : end) - from};
}

static double time_up_to(const struct job *j, double limit)
{
    double sum = 0;

    for (int s = (int)(j->submit / SLOT_S); s < SLOTS && s * SLOT_S < limit && sum < j->run; s++)
        sum += in_slot(j, s, limit).len;
    return sum;
}

/* Its cheapest time: cost, with what it buys added to 'bought'. */
static double buy(const struct job *j)
{
    double low = j->submit, high = SLOTS * SLOT_S * 2, sum = 0, cost = 0;

    for (int k = 0; k < HALVINGS; k++) {
        const double middle = (low + high) / 2;

        if (time_up_to(j, middle) >= j->run)
            high = middle;
        else
            low = middle;
    }
    for (int s = (int)(j->submit / SLOT_S); s < SLOTS && s * SLOT_S < high && sum < j->run; s++) {
        struct span b = in_slot(j, s, high);

        b.len = b.len < j->run - sum ? b.len : j->run - sum;
        sum += b.len;
        cost += b.len * (b.from + b.len / 2) / j->run + price[s] * j->gpus * b.len;
        bought[s] += j->gpus * b.len;
    }
    return cost;
}

/* The bound at these prices. */
static double bound(int n, double gpus)
{
    double sum = 0;

    for (int s = 0; s < SLOTS; s++) {
        bought[s] = 0;
        sum -= price[s] * gpus * SLOT_S;
    }
    for (int i = 0; i < n; i++)
        if (jobs[i].run > 0)
            sum += buy(&jobs[i]) - jobs[i].submit - jobs[i].run / 2;
    return sum / n;
}

static void change_prices(double gpus, double gap, double scale)
{
    double square = 1e-9;

    for (int s = 0; s < SLOTS; s++) {
        const double over = bought[s] - gpus * SLOT_S;

        square += over < 0 && price[s] <= 0 ? 0 : over * over;
    }
    for (int s = 0; s < SLOTS; s++) {
        price[s] += scale * gap / square * (bought[s] - gpus * SLOT_S);
        price[s] = price[s] > 0 ? price[s] : 0;
    }
}

/* How many there are. */
static int read_jobs(FILE *from)
{
    char line[256], *at;
    int n = 0;

    for (; n < JOBS && fgets(line, sizeof(line), from); n++) {
        jobs[n].submit = strtod(line, &at);
        jobs[n].run = strtod(at, &at);
        jobs[n].gpus = strtod(at, NULL);
    }
    return n;
}

int main(int argc, char **argv)
{
    double best = 0, scale = 1, gpus, guess;
    int n, worse = 0, rounds;

    if (argc != 4)
        return 2;
    gpus = strtod(argv[1], NULL);
    guess = strtod(argv[2], NULL);
    rounds = (int)strtol(argv[3], NULL, 10);
    n = read_jobs(stdin);
    for (int k = 0; k < rounds && n > 0; k++) {
        const double b = bound(n, gpus);

        worse = b > best ? 0 : worse + 1;
        best = b > best ? b : best;
        if (worse > 8) {
            scale *= 0.7;
            worse = 0;
        }
        change_prices(gpus, guess > b ? (guess - b) * n : 0, scale);
    }
    printf("%.4f\n", best);
    return 0;
}
