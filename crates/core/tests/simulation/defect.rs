//! Mistakes that schedulers really made. Each is switched on in the model, and the simulation must notice.

use crate::invariant::Invariant::{self, I2, I3, I5, I6, I7, I8, I9, I10, I11, I13};

macro_rules! defects {
    ($($(#[$doc:meta])* $name:ident => [$($by:ident),+];)+) => {
        /// A known-bad variant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Defect { $($(#[$doc])* $name,)+ }

        impl Defect {
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)+];

            /// The promises that it breaks first, as far as seeds have shown.
            pub(crate) fn breaks(self) -> &'static [Invariant] {
                match self { $(Self::$name => &[$($by),+],)+ }
            }
        }
    };
}

defects! {
    /// The store takes every write, whatever fence it names.
    WritesWithoutFence => [I3];
    /// A take-over leaves the fence as it was.
    FenceStaysOnTakeOver => [I2];
    /// The sweeper looks first and then requeues by id, though the task changed hands in between.
    SweeperTrustsWhatItSaw => [I3, I2];
    /// The fence moves when a lease runs out, though nobody took the task.
    ExpiryMovesTheFence => [I2];
    /// A heartbeat is matched by the task alone: whoever lost it believes to hold it.
    HeartbeatByIdOnly => [I9];
    /// A lease is judged by the clock of whoever wants the task.
    ExpiryByTheThiefsClock => [I2];
    /// A change by the sweeper is not written to the log.
    EventForgotten => [I5];
    /// The lease stays in the row when the claim is over.
    LeaseSurvivesItsClaim => [I2];
    /// What a person took from a worker and put back is claimed while its agent still works.
    ClaimsWhatWasJustTakenAway => [I9];
    /// A claim of a worker that died is never taken over.
    NobodyTakesOver => [I10];
    /// Nothing freezes the agent when its lease runs out.
    NoShim => [I9];
    /// A process that is not heard of is held to be dead, and its agent adopted.
    AdoptsFromTheLiving => [I2];
    /// An adoption is matched by its fence alone, which it leaves as it was: one that comes late undoes the next.
    AdoptsFromWhomever => [I2];
    /// Nothing ends an agent that nobody has adopted when its lease is over.
    OrphansAreForgotten => [I13];
    /// An agent is started on the word of a renewal, however long ago that was.
    SpawnsOnOldNews => [I9];
    /// The deadline is counted from when the answer came.
    DeadlineFromTheAnswer => [I9];
    /// The deadline is kept on a clock that stands still while the machine sleeps.
    DeadlineSleepsToo => [I9];
    /// A worker that slept takes over at once what its neighbours on the same machine held.
    StealsRightAfterWaking => [I2];
    /// All runs of a task write their result to one path.
    SharedResultPath => [I8];
    /// Who is refused reads the fence anew and tells its result again.
    RefreshesItsFence => [I3];
    /// A step is done without a record that it was begun.
    NoIntent => [I6];
    /// The branch is pushed by force, whatever is there.
    PushesByForce => [I3];
    /// A pull request is opened without looking for one, at a forge that does not mind.
    OpensWithoutLooking => [I6];
    /// A pull request is merged at whatever commit it has by then.
    MergesAnyHead => [I6];
    /// The candidate is built anew when the base has moved, and lands without a test of its own.
    GateOfAnotherTree => [I6];
    /// A merge that was not answered is made again without looking.
    MergesAgain => [I6];
    /// No checks at all count as green.
    NoChecksAreGreen => [I7];
    /// A step is told as done as soon as it was asked for.
    TellsBeforeItKnows => [I7];
    /// A failure of the system is told as a failure of the task.
    SystemBlamesTheTask => [I11];
}
