import { Message, type Body } from './codec.js';
export declare const Kind: {
    readonly stage: 1;
    readonly task: 2;
    readonly round: 3;
    readonly open: 4;
    readonly claim: 5;
    readonly batch: 6;
    readonly close: 7;
    readonly end: 8;
};
export type Kind = (typeof Kind)[keyof typeof Kind];
export declare const Suite: {
    readonly none: 1;
    readonly x25519: 2;
    readonly mlkem768X25519: 3;
};
export declare const Trust: {
    readonly shuffle: 1;
    readonly pan: 2;
    readonly shufflePan: 3;
    readonly local: 4;
};
export declare const Unit: {
    readonly event: 0;
    readonly user: 1;
};
export declare const Statistic: {
    readonly gradient: 0;
    readonly moments: 1;
    readonly matrix: 2;
};
export declare const Continuous: {
    readonly no: 0;
    readonly constant: 1;
    readonly decaying: 2;
    readonly epochs: 3;
    readonly adaptive: 4;
};
export declare const Loss: Message<{
    name: import("./codec.js").Field<string>;
    classes: import("./codec.js").Field<number>;
    level: import("./codec.js").Field<number>;
    width: import("./codec.js").Field<number>;
    scoreBound: import("./codec.js").Field<number>;
    maxCount: import("./codec.js").Field<number>;
    classWeights: import("./codec.js").Field<number[]>;
    labelNoise: import("./codec.js").Field<number>;
}>;
export declare const ConstraintSet: Message<{
    kind: import("./codec.js").Field<string>;
    radius: import("./codec.js").Field<number>;
    min: import("./codec.js").Field<number>;
    max: import("./codec.js").Field<number>;
}>;
export declare const Practical: Message<{
    loss: import("./codec.js").Field<Body<{
        name: import("./codec.js").Field<string>;
        classes: import("./codec.js").Field<number>;
        level: import("./codec.js").Field<number>;
        width: import("./codec.js").Field<number>;
        scoreBound: import("./codec.js").Field<number>;
        maxCount: import("./codec.js").Field<number>;
        classWeights: import("./codec.js").Field<number[]>;
        labelNoise: import("./codec.js").Field<number>;
    }> | undefined>;
    features: import("./codec.js").Field<number>;
    indicators: import("./codec.js").Field<import("./bytes.js").Bytes>;
    bound: import("./codec.js").Field<number>;
    intercept: import("./codec.js").Field<number>;
    labelLow: import("./codec.js").Field<number>;
    labelHigh: import("./codec.js").Field<number>;
    users: import("./codec.js").Field<bigint>;
    clip: import("./codec.js").Field<number>;
    unit: import("./codec.js").Field<number>;
}>;
export declare const Frame: Message<{
    center: import("./codec.js").Field<number[]>;
    scale: import("./codec.js").Field<number[]>;
    intercept: import("./codec.js").Field<number>;
    bound: import("./codec.js").Field<number>;
    clip: import("./codec.js").Field<number>;
    smoothing: import("./codec.js").Field<number>;
    whitener: import("./codec.js").Field<number[]>;
    labelCenter: import("./codec.js").Field<number>;
    labelScale: import("./codec.js").Field<number>;
    labelWeight: import("./codec.js").Field<number>;
}>;
export declare const Scorecard: Message<{
    norm: import("./codec.js").Field<number>;
    low: import("./codec.js").Field<number>;
    high: import("./codec.js").Field<number>;
    correctness: import("./codec.js").Field<boolean>;
    labelNoise: import("./codec.js").Field<number>;
}>;
export declare const Descent: Message<{
    stepSize: import("./codec.js").Field<number>;
    mu: import("./codec.js").Field<number>;
}>;
export declare const Acceleration: Message<{
    v: import("./codec.js").Field<number>;
    mu: import("./codec.js").Field<number>;
    smoothness: import("./codec.js").Field<number>;
}>;
export declare const Prox: Message<{
    weight: import("./codec.js").Field<number>;
    steps: import("./codec.js").Field<number>;
    stepSize: import("./codec.js").Field<number>;
}>;
export declare const Mechanism: Message<{
    dim: import("./codec.js").Field<number>;
    clipNorm: import("./codec.js").Field<number>;
    levels: import("./codec.js").Field<number>;
    trials: import("./codec.js").Field<number>;
    coin: import("./codec.js").Field<number>;
    coinBits: import("./codec.js").Field<number>;
    floorTrials: import("./codec.js").Field<bigint>;
    maxBundle: import("./codec.js").Field<number>;
    scores: import("./codec.js").Field<number>;
    units: import("./codec.js").Field<bigint>;
    window: import("./codec.js").Field<number>;
    minimizer: import("./codec.js").Field<boolean>;
}>;
export declare const Phase: Message<{
    users: import("./codec.js").Field<bigint>;
    rounds: import("./codec.js").Field<bigint>;
    cohort: import("./codec.js").Field<bigint>;
    minimum: import("./codec.js").Field<bigint>;
    mechanism: import("./codec.js").Field<Body<{
        dim: import("./codec.js").Field<number>;
        clipNorm: import("./codec.js").Field<number>;
        levels: import("./codec.js").Field<number>;
        trials: import("./codec.js").Field<number>;
        coin: import("./codec.js").Field<number>;
        coinBits: import("./codec.js").Field<number>;
        floorTrials: import("./codec.js").Field<bigint>;
        maxBundle: import("./codec.js").Field<number>;
        scores: import("./codec.js").Field<number>;
        units: import("./codec.js").Field<bigint>;
        window: import("./codec.js").Field<number>;
        minimizer: import("./codec.js").Field<boolean>;
    }> | undefined>;
    roundsPerUser: import("./codec.js").Field<number>;
    smoothing: import("./codec.js").Field<number>;
    statistic: import("./codec.js").Field<number>;
    descent: import("./codec.js").Field<Body<{
        stepSize: import("./codec.js").Field<number>;
        mu: import("./codec.js").Field<number>;
    }> | undefined>;
    acceleration: import("./codec.js").Field<Body<{
        v: import("./codec.js").Field<number>;
        mu: import("./codec.js").Field<number>;
        smoothness: import("./codec.js").Field<number>;
    }> | undefined>;
    again: import("./codec.js").Field<boolean>;
    prox: import("./codec.js").Field<Body<{
        weight: import("./codec.js").Field<number>;
        steps: import("./codec.js").Field<number>;
        stepSize: import("./codec.js").Field<number>;
    }> | undefined>;
    top: import("./codec.js").Field<bigint>;
}>;
export declare const StartPrivacy: Message<{
    task: import("./codec.js").Field<string>;
    epsilon: import("./codec.js").Field<number>;
    delta: import("./codec.js").Field<number>;
    unit: import("./codec.js").Field<number>;
    users: import("./codec.js").Field<bigint>;
}>;
export declare const Plan: Message<{
    algorithm: import("./codec.js").Field<string>;
    phases: import("./codec.js").Field<Body<{
        users: import("./codec.js").Field<bigint>;
        rounds: import("./codec.js").Field<bigint>;
        cohort: import("./codec.js").Field<bigint>;
        minimum: import("./codec.js").Field<bigint>;
        mechanism: import("./codec.js").Field<Body<{
            dim: import("./codec.js").Field<number>;
            clipNorm: import("./codec.js").Field<number>;
            levels: import("./codec.js").Field<number>;
            trials: import("./codec.js").Field<number>;
            coin: import("./codec.js").Field<number>;
            coinBits: import("./codec.js").Field<number>;
            floorTrials: import("./codec.js").Field<bigint>;
            maxBundle: import("./codec.js").Field<number>;
            scores: import("./codec.js").Field<number>;
            units: import("./codec.js").Field<bigint>;
            window: import("./codec.js").Field<number>;
            minimizer: import("./codec.js").Field<boolean>;
        }> | undefined>;
        roundsPerUser: import("./codec.js").Field<number>;
        smoothing: import("./codec.js").Field<number>;
        statistic: import("./codec.js").Field<number>;
        descent: import("./codec.js").Field<Body<{
            stepSize: import("./codec.js").Field<number>;
            mu: import("./codec.js").Field<number>;
        }> | undefined>;
        acceleration: import("./codec.js").Field<Body<{
            v: import("./codec.js").Field<number>;
            mu: import("./codec.js").Field<number>;
            smoothness: import("./codec.js").Field<number>;
        }> | undefined>;
        again: import("./codec.js").Field<boolean>;
        prox: import("./codec.js").Field<Body<{
            weight: import("./codec.js").Field<number>;
            steps: import("./codec.js").Field<number>;
            stepSize: import("./codec.js").Field<number>;
        }> | undefined>;
        top: import("./codec.js").Field<bigint>;
    }>[]>;
    continuous: import("./codec.js").Field<number>;
    trust: import("./codec.js").Field<number>;
    honestFraction: import("./codec.js").Field<string>;
    epsilon: import("./codec.js").Field<number>;
    delta: import("./codec.js").Field<number>;
    epsilonBudget: import("./codec.js").Field<number>;
    deadlineMs: import("./codec.js").Field<bigint>;
    clipNorm: import("./codec.js").Field<number>;
    clips: import("./codec.js").Field<boolean>;
    ridge: import("./codec.js").Field<number>;
    set: import("./codec.js").Field<Body<{
        kind: import("./codec.js").Field<string>;
        radius: import("./codec.js").Field<number>;
        min: import("./codec.js").Field<number>;
        max: import("./codec.js").Field<number>;
    }> | undefined>;
    practical: import("./codec.js").Field<Body<{
        loss: import("./codec.js").Field<Body<{
            name: import("./codec.js").Field<string>;
            classes: import("./codec.js").Field<number>;
            level: import("./codec.js").Field<number>;
            width: import("./codec.js").Field<number>;
            scoreBound: import("./codec.js").Field<number>;
            maxCount: import("./codec.js").Field<number>;
            classWeights: import("./codec.js").Field<number[]>;
            labelNoise: import("./codec.js").Field<number>;
        }> | undefined>;
        features: import("./codec.js").Field<number>;
        indicators: import("./codec.js").Field<import("./bytes.js").Bytes>;
        bound: import("./codec.js").Field<number>;
        intercept: import("./codec.js").Field<number>;
        labelLow: import("./codec.js").Field<number>;
        labelHigh: import("./codec.js").Field<number>;
        users: import("./codec.js").Field<bigint>;
        clip: import("./codec.js").Field<number>;
        unit: import("./codec.js").Field<number>;
    }> | undefined>;
    scorecard: import("./codec.js").Field<Body<{
        norm: import("./codec.js").Field<number>;
        low: import("./codec.js").Field<number>;
        high: import("./codec.js").Field<number>;
        correctness: import("./codec.js").Field<boolean>;
        labelNoise: import("./codec.js").Field<number>;
    }> | undefined>;
    start: import("./codec.js").Field<number[]>;
    startHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    retentionMs: import("./codec.js").Field<bigint>;
    unit: import("./codec.js").Field<number>;
    silos: import("./codec.js").Field<bigint>;
    radius: import("./codec.js").Field<number>;
    staleMs: import("./codec.js").Field<bigint>;
    startPrivacy: import("./codec.js").Field<Body<{
        task: import("./codec.js").Field<string>;
        epsilon: import("./codec.js").Field<number>;
        delta: import("./codec.js").Field<number>;
        unit: import("./codec.js").Field<number>;
        users: import("./codec.js").Field<bigint>;
    }> | undefined>;
    places: import("./codec.js").Field<boolean>;
}>;
export declare const Signed: Message<{
    version: import("./codec.js").Field<number>;
    kind: import("./codec.js").Field<number>;
    body: import("./codec.js").Field<import("./bytes.js").Bytes>;
    key: import("./codec.js").Field<import("./bytes.js").Bytes>;
    signature: import("./codec.js").Field<import("./bytes.js").Bytes>;
}>;
export declare const StageIdentity: Message<{
    version: import("./codec.js").Field<number>;
    task: import("./codec.js").Field<string>;
    key: import("./codec.js").Field<import("./bytes.js").Bytes>;
}>;
export declare const Task: Message<{
    version: import("./codec.js").Field<number>;
    name: import("./codec.js").Field<string>;
    declaration: import("./codec.js").Field<import("./bytes.js").Bytes>;
    plan: import("./codec.js").Field<Body<{
        algorithm: import("./codec.js").Field<string>;
        phases: import("./codec.js").Field<Body<{
            users: import("./codec.js").Field<bigint>;
            rounds: import("./codec.js").Field<bigint>;
            cohort: import("./codec.js").Field<bigint>;
            minimum: import("./codec.js").Field<bigint>;
            mechanism: import("./codec.js").Field<Body<{
                dim: import("./codec.js").Field<number>;
                clipNorm: import("./codec.js").Field<number>;
                levels: import("./codec.js").Field<number>;
                trials: import("./codec.js").Field<number>;
                coin: import("./codec.js").Field<number>;
                coinBits: import("./codec.js").Field<number>;
                floorTrials: import("./codec.js").Field<bigint>;
                maxBundle: import("./codec.js").Field<number>;
                scores: import("./codec.js").Field<number>;
                units: import("./codec.js").Field<bigint>;
                window: import("./codec.js").Field<number>;
                minimizer: import("./codec.js").Field<boolean>;
            }> | undefined>;
            roundsPerUser: import("./codec.js").Field<number>;
            smoothing: import("./codec.js").Field<number>;
            statistic: import("./codec.js").Field<number>;
            descent: import("./codec.js").Field<Body<{
                stepSize: import("./codec.js").Field<number>;
                mu: import("./codec.js").Field<number>;
            }> | undefined>;
            acceleration: import("./codec.js").Field<Body<{
                v: import("./codec.js").Field<number>;
                mu: import("./codec.js").Field<number>;
                smoothness: import("./codec.js").Field<number>;
            }> | undefined>;
            again: import("./codec.js").Field<boolean>;
            prox: import("./codec.js").Field<Body<{
                weight: import("./codec.js").Field<number>;
                steps: import("./codec.js").Field<number>;
                stepSize: import("./codec.js").Field<number>;
            }> | undefined>;
            top: import("./codec.js").Field<bigint>;
        }>[]>;
        continuous: import("./codec.js").Field<number>;
        trust: import("./codec.js").Field<number>;
        honestFraction: import("./codec.js").Field<string>;
        epsilon: import("./codec.js").Field<number>;
        delta: import("./codec.js").Field<number>;
        epsilonBudget: import("./codec.js").Field<number>;
        deadlineMs: import("./codec.js").Field<bigint>;
        clipNorm: import("./codec.js").Field<number>;
        clips: import("./codec.js").Field<boolean>;
        ridge: import("./codec.js").Field<number>;
        set: import("./codec.js").Field<Body<{
            kind: import("./codec.js").Field<string>;
            radius: import("./codec.js").Field<number>;
            min: import("./codec.js").Field<number>;
            max: import("./codec.js").Field<number>;
        }> | undefined>;
        practical: import("./codec.js").Field<Body<{
            loss: import("./codec.js").Field<Body<{
                name: import("./codec.js").Field<string>;
                classes: import("./codec.js").Field<number>;
                level: import("./codec.js").Field<number>;
                width: import("./codec.js").Field<number>;
                scoreBound: import("./codec.js").Field<number>;
                maxCount: import("./codec.js").Field<number>;
                classWeights: import("./codec.js").Field<number[]>;
                labelNoise: import("./codec.js").Field<number>;
            }> | undefined>;
            features: import("./codec.js").Field<number>;
            indicators: import("./codec.js").Field<import("./bytes.js").Bytes>;
            bound: import("./codec.js").Field<number>;
            intercept: import("./codec.js").Field<number>;
            labelLow: import("./codec.js").Field<number>;
            labelHigh: import("./codec.js").Field<number>;
            users: import("./codec.js").Field<bigint>;
            clip: import("./codec.js").Field<number>;
            unit: import("./codec.js").Field<number>;
        }> | undefined>;
        scorecard: import("./codec.js").Field<Body<{
            norm: import("./codec.js").Field<number>;
            low: import("./codec.js").Field<number>;
            high: import("./codec.js").Field<number>;
            correctness: import("./codec.js").Field<boolean>;
            labelNoise: import("./codec.js").Field<number>;
        }> | undefined>;
        start: import("./codec.js").Field<number[]>;
        startHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        retentionMs: import("./codec.js").Field<bigint>;
        unit: import("./codec.js").Field<number>;
        silos: import("./codec.js").Field<bigint>;
        radius: import("./codec.js").Field<number>;
        staleMs: import("./codec.js").Field<bigint>;
        startPrivacy: import("./codec.js").Field<Body<{
            task: import("./codec.js").Field<string>;
            epsilon: import("./codec.js").Field<number>;
            delta: import("./codec.js").Field<number>;
            unit: import("./codec.js").Field<number>;
            users: import("./codec.js").Field<bigint>;
        }> | undefined>;
        places: import("./codec.js").Field<boolean>;
    }> | undefined>;
    learnerKey: import("./codec.js").Field<import("./bytes.js").Bytes>;
    stageKey: import("./codec.js").Field<import("./bytes.js").Bytes>;
    suite: import("./codec.js").Field<number>;
    life: import("./codec.js").Field<import("./bytes.js").Bytes>;
    public: import("./codec.js").Field<import("./bytes.js").Bytes>;
}>;
export declare const Round: Message<{
    version: import("./codec.js").Field<number>;
    taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    round: import("./codec.js").Field<bigint>;
    step: import("./codec.js").Field<bigint>;
    point: import("./codec.js").Field<number[]>;
    frame: import("./codec.js").Field<Body<{
        center: import("./codec.js").Field<number[]>;
        scale: import("./codec.js").Field<number[]>;
        intercept: import("./codec.js").Field<number>;
        bound: import("./codec.js").Field<number>;
        clip: import("./codec.js").Field<number>;
        smoothing: import("./codec.js").Field<number>;
        whitener: import("./codec.js").Field<number[]>;
        labelCenter: import("./codec.js").Field<number>;
        labelScale: import("./codec.js").Field<number>;
        labelWeight: import("./codec.js").Field<number>;
    }> | undefined>;
    deadlineMs: import("./codec.js").Field<bigint>;
    cohort: import("./codec.js").Field<bigint>;
}>;
export declare const Open: Message<{
    version: import("./codec.js").Field<number>;
    taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    round: import("./codec.js").Field<bigint>;
    attempt: import("./codec.js").Field<bigint>;
    manifestHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    suite: import("./codec.js").Field<number>;
    publicKey: import("./codec.js").Field<import("./bytes.js").Bytes>;
    instance: import("./codec.js").Field<import("./bytes.js").Bytes>;
    startedUnixMs: import("./codec.js").Field<bigint>;
    joinProbability: import("./codec.js").Field<number>;
    joinDoublingMs: import("./codec.js").Field<number>;
    placesMs: import("./codec.js").Field<number>;
}>;
export declare const Claim: Message<{
    version: import("./codec.js").Field<number>;
    taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    round: import("./codec.js").Field<bigint>;
    attempt: import("./codec.js").Field<bigint>;
    manifestHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    instance: import("./codec.js").Field<import("./bytes.js").Bytes>;
}>;
export declare const Reject: Message<{
    reason: import("./codec.js").Field<string>;
    count: import("./codec.js").Field<bigint>;
}>;
export declare const Batch: Message<{
    version: import("./codec.js").Field<number>;
    taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    round: import("./codec.js").Field<bigint>;
    attempt: import("./codec.js").Field<bigint>;
    manifestHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    void: import("./codec.js").Field<boolean>;
    reason: import("./codec.js").Field<string>;
    users: import("./codec.js").Field<bigint>;
    noiseTrials: import("./codec.js").Field<bigint>;
    totals: import("./codec.js").Field<bigint[]>;
    cutoff: import("./codec.js").Field<bigint>;
    rejects: import("./codec.js").Field<Body<{
        reason: import("./codec.js").Field<string>;
        count: import("./codec.js").Field<bigint>;
    }>[]>;
}>;
export declare const Close: Message<{
    version: import("./codec.js").Field<number>;
    taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    round: import("./codec.js").Field<bigint>;
    attempt: import("./codec.js").Field<bigint>;
    manifestHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    batchHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    cutoff: import("./codec.js").Field<bigint>;
    void: import("./codec.js").Field<boolean>;
}>;
export declare const End: Message<{
    version: import("./codec.js").Field<number>;
    taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    lastRound: import("./codec.js").Field<bigint>;
    reason: import("./codec.js").Field<string>;
}>;
export declare const Report: Message<{
    version: import("./codec.js").Field<number>;
    taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
    ids: import("./codec.js").Field<import("./bytes.js").Bytes[]>;
    encapsulated: import("./codec.js").Field<import("./bytes.js").Bytes>;
    ciphertext: import("./codec.js").Field<import("./bytes.js").Bytes>;
}>;
/** The body of each kind of signed message. */
export declare const bodies: {
    readonly 1: Message<{
        version: import("./codec.js").Field<number>;
        task: import("./codec.js").Field<string>;
        key: import("./codec.js").Field<import("./bytes.js").Bytes>;
    }>;
    readonly 2: Message<{
        version: import("./codec.js").Field<number>;
        name: import("./codec.js").Field<string>;
        declaration: import("./codec.js").Field<import("./bytes.js").Bytes>;
        plan: import("./codec.js").Field<Body<{
            algorithm: import("./codec.js").Field<string>;
            phases: import("./codec.js").Field<Body<{
                users: import("./codec.js").Field<bigint>;
                rounds: import("./codec.js").Field<bigint>;
                cohort: import("./codec.js").Field<bigint>;
                minimum: import("./codec.js").Field<bigint>;
                mechanism: import("./codec.js").Field<Body<{
                    dim: import("./codec.js").Field<number>;
                    clipNorm: import("./codec.js").Field<number>;
                    levels: import("./codec.js").Field<number>;
                    trials: import("./codec.js").Field<number>;
                    coin: import("./codec.js").Field<number>;
                    coinBits: import("./codec.js").Field<number>;
                    floorTrials: import("./codec.js").Field<bigint>;
                    maxBundle: import("./codec.js").Field<number>;
                    scores: import("./codec.js").Field<number>;
                    units: import("./codec.js").Field<bigint>;
                    window: import("./codec.js").Field<number>;
                    minimizer: import("./codec.js").Field<boolean>;
                }> | undefined>;
                roundsPerUser: import("./codec.js").Field<number>;
                smoothing: import("./codec.js").Field<number>;
                statistic: import("./codec.js").Field<number>;
                descent: import("./codec.js").Field<Body<{
                    stepSize: import("./codec.js").Field<number>;
                    mu: import("./codec.js").Field<number>;
                }> | undefined>;
                acceleration: import("./codec.js").Field<Body<{
                    v: import("./codec.js").Field<number>;
                    mu: import("./codec.js").Field<number>;
                    smoothness: import("./codec.js").Field<number>;
                }> | undefined>;
                again: import("./codec.js").Field<boolean>;
                prox: import("./codec.js").Field<Body<{
                    weight: import("./codec.js").Field<number>;
                    steps: import("./codec.js").Field<number>;
                    stepSize: import("./codec.js").Field<number>;
                }> | undefined>;
                top: import("./codec.js").Field<bigint>;
            }>[]>;
            continuous: import("./codec.js").Field<number>;
            trust: import("./codec.js").Field<number>;
            honestFraction: import("./codec.js").Field<string>;
            epsilon: import("./codec.js").Field<number>;
            delta: import("./codec.js").Field<number>;
            epsilonBudget: import("./codec.js").Field<number>;
            deadlineMs: import("./codec.js").Field<bigint>;
            clipNorm: import("./codec.js").Field<number>;
            clips: import("./codec.js").Field<boolean>;
            ridge: import("./codec.js").Field<number>;
            set: import("./codec.js").Field<Body<{
                kind: import("./codec.js").Field<string>;
                radius: import("./codec.js").Field<number>;
                min: import("./codec.js").Field<number>;
                max: import("./codec.js").Field<number>;
            }> | undefined>;
            practical: import("./codec.js").Field<Body<{
                loss: import("./codec.js").Field<Body<{
                    name: import("./codec.js").Field<string>;
                    classes: import("./codec.js").Field<number>;
                    level: import("./codec.js").Field<number>;
                    width: import("./codec.js").Field<number>;
                    scoreBound: import("./codec.js").Field<number>;
                    maxCount: import("./codec.js").Field<number>;
                    classWeights: import("./codec.js").Field<number[]>;
                    labelNoise: import("./codec.js").Field<number>;
                }> | undefined>;
                features: import("./codec.js").Field<number>;
                indicators: import("./codec.js").Field<import("./bytes.js").Bytes>;
                bound: import("./codec.js").Field<number>;
                intercept: import("./codec.js").Field<number>;
                labelLow: import("./codec.js").Field<number>;
                labelHigh: import("./codec.js").Field<number>;
                users: import("./codec.js").Field<bigint>;
                clip: import("./codec.js").Field<number>;
                unit: import("./codec.js").Field<number>;
            }> | undefined>;
            scorecard: import("./codec.js").Field<Body<{
                norm: import("./codec.js").Field<number>;
                low: import("./codec.js").Field<number>;
                high: import("./codec.js").Field<number>;
                correctness: import("./codec.js").Field<boolean>;
                labelNoise: import("./codec.js").Field<number>;
            }> | undefined>;
            start: import("./codec.js").Field<number[]>;
            startHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
            retentionMs: import("./codec.js").Field<bigint>;
            unit: import("./codec.js").Field<number>;
            silos: import("./codec.js").Field<bigint>;
            radius: import("./codec.js").Field<number>;
            staleMs: import("./codec.js").Field<bigint>;
            startPrivacy: import("./codec.js").Field<Body<{
                task: import("./codec.js").Field<string>;
                epsilon: import("./codec.js").Field<number>;
                delta: import("./codec.js").Field<number>;
                unit: import("./codec.js").Field<number>;
                users: import("./codec.js").Field<bigint>;
            }> | undefined>;
            places: import("./codec.js").Field<boolean>;
        }> | undefined>;
        learnerKey: import("./codec.js").Field<import("./bytes.js").Bytes>;
        stageKey: import("./codec.js").Field<import("./bytes.js").Bytes>;
        suite: import("./codec.js").Field<number>;
        life: import("./codec.js").Field<import("./bytes.js").Bytes>;
        public: import("./codec.js").Field<import("./bytes.js").Bytes>;
    }>;
    readonly 3: Message<{
        version: import("./codec.js").Field<number>;
        taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        round: import("./codec.js").Field<bigint>;
        step: import("./codec.js").Field<bigint>;
        point: import("./codec.js").Field<number[]>;
        frame: import("./codec.js").Field<Body<{
            center: import("./codec.js").Field<number[]>;
            scale: import("./codec.js").Field<number[]>;
            intercept: import("./codec.js").Field<number>;
            bound: import("./codec.js").Field<number>;
            clip: import("./codec.js").Field<number>;
            smoothing: import("./codec.js").Field<number>;
            whitener: import("./codec.js").Field<number[]>;
            labelCenter: import("./codec.js").Field<number>;
            labelScale: import("./codec.js").Field<number>;
            labelWeight: import("./codec.js").Field<number>;
        }> | undefined>;
        deadlineMs: import("./codec.js").Field<bigint>;
        cohort: import("./codec.js").Field<bigint>;
    }>;
    readonly 4: Message<{
        version: import("./codec.js").Field<number>;
        taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        round: import("./codec.js").Field<bigint>;
        attempt: import("./codec.js").Field<bigint>;
        manifestHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        suite: import("./codec.js").Field<number>;
        publicKey: import("./codec.js").Field<import("./bytes.js").Bytes>;
        instance: import("./codec.js").Field<import("./bytes.js").Bytes>;
        startedUnixMs: import("./codec.js").Field<bigint>;
        joinProbability: import("./codec.js").Field<number>;
        joinDoublingMs: import("./codec.js").Field<number>;
        placesMs: import("./codec.js").Field<number>;
    }>;
    readonly 5: Message<{
        version: import("./codec.js").Field<number>;
        taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        round: import("./codec.js").Field<bigint>;
        attempt: import("./codec.js").Field<bigint>;
        manifestHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        instance: import("./codec.js").Field<import("./bytes.js").Bytes>;
    }>;
    readonly 6: Message<{
        version: import("./codec.js").Field<number>;
        taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        round: import("./codec.js").Field<bigint>;
        attempt: import("./codec.js").Field<bigint>;
        manifestHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        void: import("./codec.js").Field<boolean>;
        reason: import("./codec.js").Field<string>;
        users: import("./codec.js").Field<bigint>;
        noiseTrials: import("./codec.js").Field<bigint>;
        totals: import("./codec.js").Field<bigint[]>;
        cutoff: import("./codec.js").Field<bigint>;
        rejects: import("./codec.js").Field<Body<{
            reason: import("./codec.js").Field<string>;
            count: import("./codec.js").Field<bigint>;
        }>[]>;
    }>;
    readonly 7: Message<{
        version: import("./codec.js").Field<number>;
        taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        round: import("./codec.js").Field<bigint>;
        attempt: import("./codec.js").Field<bigint>;
        manifestHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        batchHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        cutoff: import("./codec.js").Field<bigint>;
        void: import("./codec.js").Field<boolean>;
    }>;
    readonly 8: Message<{
        version: import("./codec.js").Field<number>;
        taskHash: import("./codec.js").Field<import("./bytes.js").Bytes>;
        lastRound: import("./codec.js").Field<bigint>;
        reason: import("./codec.js").Field<string>;
    }>;
};
export type BodyOf<K extends Kind> = (typeof bodies)[K] extends Message<infer S> ? Body<S> : never;
export type Bodied<M> = M extends Message<infer S> ? Body<S> : never;
