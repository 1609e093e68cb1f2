//! `clarion demo`: demonstrates everything on this machine, for a newcomer.

mod bill;
mod customer;
mod paint;
mod stage;
mod waveform;

use std::path::Path;
use std::time::Instant;

use anyhow::{bail, ensure};
use clap::Args;

use self::customer::{DemoCustomer, JSON, LOOK, PATIENCE, XML, between};
use self::paint::{more, step};
use self::stage::{DemoReceiver, DemoStage, RunningServer};
use crate::random;

#[derive(Debug, Args)]
pub struct Demo {
    /// Keep the server running and its folder in place
    #[arg(long)]
    keep: bool,
}

impl Demo {
    pub async fn run(self) -> anyhow::Result<()> {
        let folder = std::env::temp_dir().join(format!("clarion-demo-{}", random::id()));
        std::fs::create_dir(&folder)?;
        let result = self.show(&folder).await;
        if !self.keep {
            let _ = std::fs::remove_dir_all(&folder);
        }
        result
    }

    async fn show(&self, folder: &Path) -> anyhow::Result<()> {
        let mut stage = DemoStage::prepare(folder)?;
        step(
            "A server on an embedded database, with a trunk that leads to a telephone in the same machine",
        );
        let server = stage.start().await?;
        step("An account, an application and a price, made beside the running server");
        let mut customer = DemoCustomer::sign_up(&stage, &server).await?;
        more("clarion account --help, docs/operating.md");
        let mut receiver = DemoReceiver::start().await?;

        step("A voice notification in XML over HTTPS, in Chinese and English");
        let body = format!(
            "<?xml version='1.0' encoding='utf-8'?><LandingCall><appId>{}</appId><to>13800000001</to>\
             <mediaTxt>您的订单已发货。Your order is on its way.</mediaTxt><respUrl>{}</respUrl><userData>order 42</userData></LandingCall>",
            customer.app_id, receiver.url
        );
        let first = customer.place(XML, body).await?;
        customer.watch(&first).await?;
        hear(&stage, &first).await?;
        step("The callback that arrived");
        println!("  {}", receiver.next(PATIENCE).await?);
        more("docs/api.md, docs/callbacks.md");

        step("The same in JSON, to a number that is busy");
        let body = format!(
            r#"{{"appId":"{}","to":"13800000002","mediaName":"ccp_marketingcall.wav","mediaNameType":"1","respUrl":"{}"}}"#,
            customer.app_id, receiver.url
        );
        let second = customer.place(JSON, body).await?;
        customer.watch(&second).await?;
        println!("  callback: {}", receiver.next(PATIENCE).await?);
        more("docs/calls.md: every way a call can end, and numbers for trying them out");

        step("A code, said character by character; the server forgets it when the call is over");
        let body = format!(
            r#"{{"appId":"{}","to":"13800000001","verifyCode":"7Q42","lang":"en","respUrl":"{}"}}"#,
            customer.app_id, receiver.url
        );
        let code = customer.verify(body).await?;
        customer.watch(&code).await?;
        hear(&stage, &code).await?;
        println!("  callback: {}", receiver.next(PATIENCE).await?);
        more("docs/api.md#verification-code");

        notice(&stage, &mut customer, &mut receiver).await?;

        step(
            "kill -9 while a telephone rings, and a new start: nothing is lost, nobody is called twice",
        );
        let server = self
            .crash(&stage, server, &mut customer, &mut receiver)
            .await?;
        more("docs/decisions/0009-what-becomes-of-calls-whose-process-died.md");
        let server = bill::show(&mut stage, server, &mut customer).await?;
        self.finish(server, &mut stage).await
    }

    async fn crash(
        &self,
        stage: &DemoStage<'_>,
        mut server: RunningServer,
        customer: &mut DemoCustomer,
        receiver: &mut DemoReceiver,
    ) -> anyhow::Result<RunningServer> {
        let body = format!(
            r#"{{"appId":"{}","to":"13800000003","mediaTxt":"hello","respUrl":"{}"}}"#,
            customer.app_id, receiver.url
        );
        let third = customer.place(JSON, body).await?;
        customer.until(&third, |state| state == "4").await?;
        server.process.kill().await?;
        println!("  killed");
        let server = stage.start().await?;
        customer.connect(stage, &server).await?;
        customer.watch(&third).await?;
        println!("  callback: {}", receiver.next(PATIENCE).await?);
        Ok(server)
    }

    async fn finish(
        &self,
        mut server: RunningServer,
        stage: &mut DemoStage<'_>,
    ) -> anyhow::Result<()> {
        if self.keep {
            server.stop().await?;
            stage.reset_clock();
            server = stage.start().await?;
            println!(
                "\nThe server goes on at https://{} with everything in {}",
                server.address,
                stage.folder.display()
            );
            println!("CA file for clients: {}", stage.ca().display());
            println!("Press Ctrl-C to stop it.");
            tokio::select! {
                status = server.process.wait() => bail!("the server ended: {}", status?),
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        server.stop().await?;
        println!("\nDone. Next: `make test`, or `clarion --help`.");
        Ok(())
    }
}

/// One number does not answer; the next person presses the key, and whoever watches is told each step.
async fn notice(
    stage: &DemoStage<'_>,
    customer: &mut DemoCustomer,
    receiver: &mut DemoReceiver,
) -> anyhow::Result<()> {
    step(
        "A notice: nobody answers, the next person has a turn, listens, and confirms by pressing 1",
    );
    let mut watcher = DemoReceiver::start().await?;
    let body = format!(
        r#"{{"appId":"{}","to":"13800000003","backupTo":"13800000012","ringTime":"10","confirmDtmf":"1","mediaTxt":"The pump in cellar two has failed. The water is rising.","respUrl":"{}","callStateUrl":"{}"}}"#,
        customer.app_id, receiver.url, watcher.url
    );
    let sid = customer.place(JSON, body).await?;
    step("Its events, as they arrive");
    loop {
        let event = watcher.next(PATIENCE).await?;
        let field = |name: &str| between(&event, &format!("<{name}>"), '<').unwrap_or_default();
        let told = ["seq", "event", "number", "dtmf", "result"].map(field);
        println!(
            "  {:>2}  {:<9}  {:<11}  {}{}",
            told[0], told[1], told[2], told[3], told[4]
        );
        if told[1] == "ended" {
            break;
        }
    }
    customer.watch(&sid).await?;
    println!("  callback: {}", receiver.next(PATIENCE).await?);
    hear(stage, &sid).await?;
    more("docs/notices.md");
    Ok(())
}

/// Shows what the callee heard.
async fn hear(stage: &DemoStage<'_>, sid: &str) -> anyhow::Result<()> {
    step("What the callee heard");
    let path = stage.folder.join("heard").join(format!("{sid}.wav"));
    let began = Instant::now();
    let wav = loop {
        match std::fs::read(&path) {
            Ok(wav) => break wav,
            Err(error) => ensure!(began.elapsed() < PATIENCE, "no recording: {error}"),
        }
        tokio::time::sleep(LOOK).await;
    };
    let samples = waveform::samples(&wav);
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let seconds = samples.len() as f64 / 8000.0;
    println!("  {} ({seconds:.1} s)", path.display());
    println!("  {}", waveform::picture(&samples, 72));
    Ok(())
}
