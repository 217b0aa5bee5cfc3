package shop;

import org.junit.jupiter.api.Test;

class TroubleTest {
    @Test
    void misbehaves() throws InterruptedException {
        if ("crash".equals(System.getenv("MISBEHAVE"))) {
            System.exit(3);
        }
        if ("hang".equals(System.getenv("MISBEHAVE"))) {
            Thread.sleep(3_600_000);
        }
    }
}
